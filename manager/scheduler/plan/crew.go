package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// Whether all kernels of a session have room together is more than whether each
// has: what one takes may be in the way of another that could go nowhere else. So
// where taking the next best for each fails, other agents are tried, and other
// devices of each, first for the kernels that fewest agents have room for. It is
// also what a reservation stands on: a place that was found once is found again
// in every later pass, whatever else has changed.
//
// As many agents with room for a kernel by itself as there are kernels are enough
// for it, as the others leave one of them alone. So no more than these are looked
// at, and the search does not grow with the cluster.

// maxPlaces bounds the places that are tried for a crew, over all moments at which
// it is looked at. Beyond it the next best is taken for each kernel, and what was
// found may not be found again. A place takes some microseconds; in 2,000
// random clusters gangs of up to four unequal kernels needed 123 at most, and hardly
// one in a thousand more than 50.
const maxPlaces = 512

// crew is the kernels of a session, on agents as they are.
type crew struct {
	c      *cluster
	shapes []*shape         // by kernel
	on     map[*shape][]int // agents with room for one such kernel, up to as many as there are kernels
	whole  []int            // agents with room for a kernel that take all of them or none
	order  []int            // of kernels
	at     []int            // agents, by kernel
	needs  [][]taking       // by kernel
	tries  int
	seen   map[crewState]bool
	base   map[int]uint64 // keys of the agents before any of the kernels is there
}

// crewState is a state in which the kernels from one on have no room.
type crewState struct {
	from int
	key  uint64
}

func (c *cluster) crew(shapes []*shape) *crew {
	g := &crew{c: c, shapes: shapes, on: make(map[*shape][]int, len(shapes)), at: make([]int, len(shapes)), needs: make([][]taking, len(shapes))}
	for _, s := range shapes {
		g.on[s] = nil
	}
	return g
}

// look adds agents, in the order in which they are to be taken, and reports whether
// any of them has room for one of the kernels.
func (g *crew) look(agents []int) (able bool) {
	agents = slices.DeleteFunc(slices.Clone(agents), func(i int) bool {
		if !g.c.solitary(len(g.shapes), &g.c.agents[i]) {
			return false
		}
		known := slices.Contains(g.whole, i)
		if !known && g.has(i, g.shapes[0]) {
			g.whole, known = append(g.whole, i), true
		}
		able = able || known
		return true
	})
	for s, list := range g.on {
		for _, i := range agents {
			known := slices.Contains(list, i)
			if !known && len(list) < len(g.shapes) && g.has(i, s) {
				list, known = append(list, i), true
			}
			able = able || known
		}
		g.on[s] = list
	}
	return able
}

// has reports whether an agent has room for a kernel by itself.
func (g *crew) has(i int, s *shape) bool {
	return g.c.agents[i].mayFit(g.c, s.needs) && g.c.hasRoom(i, s.steps)
}

// fit takes devices for all kernels, and tells by kernel which, or for none.
func (g *crew) fit() [][]taking {
	if needs := g.fitOn(); needs != nil {
		return needs
	}
	several := g.on
	defer func() { g.on = several }()
	for _, i := range g.whole {
		g.on = make(map[*shape][]int, len(several))
		for s := range several {
			g.on[s] = []int{i}
		}
		if needs := g.fitOn(); needs != nil {
			return needs
		}
	}
	return nil
}

// fitOn is fit on any of the agents that are listed.
func (g *crew) fitOn() [][]taking {
	if !g.mayFit() {
		return nil
	}
	g.order = g.order[:0]
	for k := range g.shapes {
		g.order = append(g.order, k)
	}
	slices.SortStableFunc(g.order, func(a, b int) int {
		s, o := g.shapes[a], g.shapes[b]
		return cmp.Or(len(g.on[s])-len(g.on[o]), s.number-o.number)
	})
	g.seen, g.base = map[crewState]bool{}, map[int]uint64{}
	if !g.from(0) {
		return nil
	}
	return slices.Clone(g.needs)
}

// mayFit is the quick look at sums before fit: it refuses only what fit would.
func (g *crew) mayFit() bool {
	for s, agents := range g.on {
		left := 0
		for _, o := range g.shapes {
			if o == s {
				left++
			}
		}
		if len(agents) >= left {
			continue
		}
		for _, i := range agents {
			left -= g.c.agents[i].times(s.needs, left)
		}
		if left > 0 {
			return false
		}
	}
	return true
}

// times is how many times, up to most, an agent has room for needs as far as sums
// tell.
func (a *agent) times(needs []need, most int) int {
	for _, n := range needs {
		most = int(min(int64(most), a.free[n.slot]/n.amount))
	}
	return most
}

// from takes devices for the kernels from the nth on.
func (g *crew) from(n int) bool {
	if n == len(g.order) {
		return true
	}
	state := crewState{n, g.key()}
	if g.seen[state] {
		return false
	}
	k := g.order[n]
	s := g.shapes[k]
	var tried []uint64 // states of agents
	for _, i := range g.on[s] {
		key := g.c.agents[i].key
		if slices.Contains(tried, key) {
			continue
		}
		tried = append(tried, key)
		switch room, all := g.upon(i, n, nil, map[string]bool{}); {
		case all:
			return true
		case room && g.tries >= maxPlaces:
			return false
		}
	}
	g.seen[state] = true
	return false
}

// upon takes devices of an agent for the nth kernel, and for all that follow it:
// the best ones but for those that are shut, and where that leaves none for
// another kernel, others than each of them. It reports whether there is room for
// this one, and for all.
func (g *crew) upon(i, n int, shut []int, known map[string]bool) (room, all bool) {
	k, mark := g.order[n], len(g.c.taken)
	if !g.take(i, g.shapes[k], shut) {
		return false, false
	}
	took := slices.Clone(g.c.taken[mark:])
	g.at[k], g.needs[k] = i, took
	if g.from(n + 1) {
		return true, true
	}
	g.c.undo(mark)
	for _, d := range g.distinct(took) {
		more := slices.Sorted(slices.Values(append(slices.Clone(shut), d)))
		key := fmt.Sprint(more)
		if known[key] || g.tries >= maxPlaces {
			continue
		}
		known[key] = true
		if _, all := g.upon(i, n, more, known); all {
			return true, true
		}
	}
	return true, false
}

// distinct lists the accelerators among takings, of those in the same state one.
func (g *crew) distinct(takings []taking) (list []int) {
	type state struct{ device, salt, pool uint64 }
	seen := map[state]bool{}
	for _, t := range takings {
		d := &g.c.agents[t.agent].devices[t.device]
		of := state{device: d.key, salt: d.salt}
		if d.pool != nil {
			of.pool = d.pool.key
		}
		if d.family != "" && !seen[of] {
			seen[of] = true
			list = append(list, t.device)
		}
	}
	return list
}

// take takes a kernel's devices on an agent, other than those that are shut.
func (g *crew) take(i int, s *shape, shut []int) bool {
	a, mark := &g.c.agents[i], len(g.c.taken)
	if !a.mayFit(g.c, s.needs) {
		return false
	}
	if _, known := g.base[i]; !known {
		g.base[i] = a.key
	}
	g.tries++
	for _, d := range shut {
		a.turn(&a.devices[d], false)
	}
	ok := g.c.takeSteps(i, s.steps, 0)
	if !ok {
		g.c.rollback(mark)
	} else if !a.flat {
		g.c.arrange(i, s.steps, mark)
	}
	for _, d := range shut {
		a.turn(&a.devices[d], true)
	}
	g.c.refresh(a)
	return ok
}

// turn makes a usable device one that is not, or that again.
func (a *agent) turn(d *device, usable bool) {
	a.drop(d)
	if d.usable = usable; usable {
		d.key -= shutKey
	} else {
		d.key += shutKey
	}
	a.add(d)
}

// shutKey tells the state of a device that is shut from that of others.
const shutKey = 0x7368757473687574

// key is the state of all agents.
func (g *crew) key() (key uint64) {
	for i, base := range g.base {
		key += mix(g.c.agents[i].key) - mix(base)
	}
	return key
}

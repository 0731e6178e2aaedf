package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// That each kernel of a session fits somewhere does not mean that all fit together: one can
// take the only place of another. If choosing the best place for each kernel fails, other
// agents are tried, and other devices of each, starting with the kernels that fit on the
// fewest agents. Reservations rely on this too: a place that was found is found again in every
// later pass, whatever else has changed.
//
// For a kernel, as many agents with room for it as there are kernels suffice, because the
// other kernels leave one of them free. So no more agents are tried, and the search does not
// grow with the cluster.

// maxPlaces limits the places that are tried for a gang, over all moments that a pass
// considers. Beyond it, each kernel gets the best place, and a place that was found may not be
// found again. A place takes some microseconds. In 2,000 random clusters, gangs of up to four
// unequal kernels needed at most 123 places, and fewer than one in a thousand needed more than
// 50.
const maxPlaces = 512

// gangSearch is the search for places for the kernels of a session.
type gangSearch struct {
	c      *cluster
	shapes []*shape         // by kernel
	on     map[*shape][]int // agents with room for one such kernel, as many as there are kernels
	whole  []int            // agents that can run only all of the kernels together
	order  []int            // order of the kernels
	at     []int            // agent of each kernel
	needs  [][]taking       // devices of each kernel
	tries  int
	seen   map[gangState]bool
	base   map[int]uint64 // keys of the agents before the search
}

// gangState is a state in which the kernels from one on do not fit.
type gangState struct {
	from int
	key  uint64
}

func (c *cluster) gangSearch(shapes []*shape) *gangSearch {
	g := &gangSearch{c: c, shapes: shapes, on: make(map[*shape][]int, len(shapes)), at: make([]int, len(shapes)), needs: make([][]taking, len(shapes))}
	for _, s := range shapes {
		g.on[s] = nil
	}
	return g
}

// look adds agents, in the order of preference, and reports whether any of them has room for
// one of the kernels.
func (g *gangSearch) look(agents []int) (able bool) {
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

// has reports whether a kernel fits on an agent by itself.
func (g *gangSearch) has(i int, s *shape) bool {
	return g.c.agents[i].mayFit(g.c, s.needs) && g.c.hasRoom(i, s.steps)
}

// fit takes devices for all kernels and returns them by kernel, or takes none.
func (g *gangSearch) fit() [][]taking {
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

// fitOn is fit on any of the added agents.
func (g *gangSearch) fitOn() [][]taking {
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
	g.seen, g.base = map[gangState]bool{}, map[int]uint64{}
	if !g.from(0) {
		return nil
	}
	return slices.Clone(g.needs)
}

// mayFit is a quick check of sums before fit. It never rejects a gang that fits.
func (g *gangSearch) mayFit() bool {
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

// times returns how many times, up to most, the needs fit on an agent by the sums of free
// amounts.
func (a *agent) times(needs []need, most int) int {
	for _, n := range needs {
		most = int(min(int64(most), a.free[n.slot]/n.amount))
	}
	return most
}

// from takes devices for the kernels from the nth on.
func (g *gangSearch) from(n int) bool {
	if n == len(g.order) {
		return true
	}
	state := gangState{n, g.key()}
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

// upon takes devices of an agent for the nth kernel, and for all kernels after it: the best
// ones except those that are shut; if another kernel then has no place, it tries without each
// of them. It reports whether this kernel fits, and whether all fit.
func (g *gangSearch) upon(i, n int, shut []int, known map[string]bool) (room, all bool) {
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

// distinct returns the accelerators among takings, one of each state.
func (g *gangSearch) distinct(takings []taking) (list []int) {
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

// take takes devices for a kernel on an agent, except those that are shut.
func (g *gangSearch) take(i int, s *shape, shut []int) bool {
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

// turn marks a device as unusable, or as usable again.
func (a *agent) turn(d *device, usable bool) {
	a.drop(d)
	if d.usable = usable; usable {
		d.key -= shutKey
	} else {
		d.key += shutKey
	}
	a.add(d)
}

// shutKey distinguishes the state of a shut device.
const shutKey = 0x7368757473687574

// key identifies the state of all agents.
func (g *gangSearch) key() (key uint64) {
	for i, base := range g.base {
		key += mix(g.c.agents[i].key) - mix(base)
	}
	return key
}

package plan

import (
	"cmp"
	"slices"
)

// Whether all kernels of a session have room together is more than whether each
// has: what one takes may be in the way of another that could go nowhere else. So
// where taking the next best for each fails, other places are tried, first for
// the kernels that fewest agents have room for.
//
// Agents with room for one kernel by itself are enough for it if there are as many
// as kernels: the others leave one of them alone. Only kernels with fewer are ever
// tried on more than one agent, and so a crew is small however large the cluster.

// maxPlaces bounds the places that are tried for a crew, over all moments at which
// it is looked at. Beyond it the next best is taken for each kernel. It is some
// microseconds for each, and kernels that differ in a session rarely need a
// hundred.
const maxPlaces = 4096

// crew is the kernels of a session, on agents as they are.
type crew struct {
	c      *cluster
	shapes []*shape         // by kernel
	on     map[*shape][]int // agents with room for one such kernel, up to as many as there are kernels
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

// look adds agents, in the order in which they are to be taken, and tells whether
// any of them has room for one of the kernels.
func (g *crew) look(agents []int) (able bool) {
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

// has tells whether an agent has room for a kernel by itself.
func (g *crew) has(i int, s *shape) bool {
	return g.c.agents[i].mayFit(g.c, s.needs) && g.c.hasRoom(i, s.steps)
}

// fit takes devices for all kernels, and tells by kernel which, or for none.
func (g *crew) fit() [][]taking {
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
		a := &g.c.agents[i]
		if slices.Contains(tried, a.key) {
			continue
		}
		tried = append(tried, a.key)
		for _, pick := range g.c.picks([]uint64{0}, s, a) {
			mark := len(g.c.taken)
			if !g.take(i, s, pick) {
				continue
			}
			g.at[k], g.needs[k] = i, slices.Clone(g.c.taken[mark:])
			if g.from(n + 1) {
				return true
			}
			g.c.undo(mark)
			if g.tries >= maxPlaces {
				return false
			}
		}
	}
	g.seen[state] = true
	return false
}

// take takes a kernel's devices on an agent.
func (g *crew) take(i int, s *shape, pick uint64) bool {
	a := &g.c.agents[i]
	if !a.mayFit(g.c, s.needs) {
		return false
	}
	if _, known := g.base[i]; !known {
		g.base[i] = a.key
	}
	g.tries++
	return g.c.fitFrom(i, s.steps, pick)
}

// key is the state of all agents.
func (g *crew) key() (key uint64) {
	for i, base := range g.base {
		key += mix(g.c.agents[i].key) - mix(base)
	}
	return key
}

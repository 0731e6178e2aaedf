package plan

import (
	"maps"
	"slices"
)

// future is a future state of some agents. Until it is closed, they stay in the classes of
// their present state.
type future struct {
	q       *queue
	now     map[int][][]int64
	classes map[int]*classes
	mark    int
}

func (q *queue) future() *future {
	return &future{q: q, now: map[int][][]int64{}, classes: map[int]*classes{}, mark: len(q.c.taken)}
}

// open sets agents to their state after all ending sessions have ended and promised devices
// are taken.
func (f *future) open(agents []int) {
	for _, i := range agents {
		f.set(i, f.q.soon(i))
	}
}

// empty sets agents to their state without sessions.
func (f *future) empty(agents []int) {
	for _, i := range agents {
		used := make([][]int64, len(f.q.c.agents[i].devices))
		for j := range used {
			used[j] = make([]int64, len(f.q.c.slots))
		}
		f.set(i, used)
	}
}

func (f *future) set(i int, used [][]int64) {
	a := &f.q.c.agents[i]
	f.classes[i], a.classes = a.classes, nil
	f.now[i] = f.q.c.become(i, used)
}

// release frees the devices of a session on the open agents, and returns these agents.
func (f *future) release(holds []taking) []int { return f.change(holds, -1) }

// hold reverts release.
func (f *future) hold(holds []taking) { f.change(holds, 1) }

func (f *future) change(holds []taking, sign int64) (changed []int) {
	for _, h := range holds {
		if f.now[h.agent] == nil {
			continue
		}
		a := &f.q.c.agents[h.agent]
		f.q.c.charge(a, &a.devices[h.device], h.slot, sign*h.amount)
		if !slices.Contains(changed, h.agent) {
			changed = append(changed, h.agent)
		}
	}
	for _, i := range changed {
		f.q.c.refresh(&f.q.c.agents[i])
	}
	return changed
}

// fit places kernels on agents, in this order, and returns the devices of each; nil unless all
// of them fit.
func (f *future) fit(agents []int, shapes []*shape) (needs [][]taking) {
	g := f.q.c.gangSearch(shapes)
	g.look(agents)
	return g.fit()
}

// could reports whether kernels fit, and takes nothing.
func (f *future) could(agents []int, shapes []*shape) bool {
	mark := len(f.q.c.taken)
	ok := f.fit(agents, shapes) != nil
	f.q.c.undo(mark)
	return ok
}

// close restores the present state of the agents.
func (f *future) close() {
	f.q.c.rollback(f.mark)
	for _, i := range slices.Sorted(maps.Keys(f.now)) {
		f.q.c.become(i, f.now[i])
		f.q.c.agents[i].classes = f.classes[i]
	}
}

// usage copies the used amounts of an agent's devices.
func (c *cluster) usage(i int) [][]int64 {
	used := make([][]int64, len(c.agents[i].devices))
	for j := range used {
		used[j] = slices.Clone(c.agents[i].devices[j].used)
	}
	return used
}

// become exchanges all used amounts of an agent.
func (c *cluster) become(i int, used [][]int64) (before [][]int64) {
	a := &c.agents[i]
	for j := range a.devices {
		before = append(before, a.devices[j].used)
		c.swap(a, &a.devices[j], used[j])
	}
	c.refresh(a)
	return before
}

// most returns the maximum of each amount.
func most(a, b [][]int64) [][]int64 {
	out := make([][]int64, len(a))
	for j := range a {
		out[j] = slices.Clone(a[j])
		if b == nil {
			continue
		}
		for s, amount := range b[j] {
			out[j][s] = max(out[j][s], amount)
		}
	}
	return out
}

// add adds takings of an agent to used amounts.
func add(used [][]int64, i int, takings []taking, sign int64) {
	if used == nil {
		return
	}
	for _, t := range takings {
		if t.agent == i {
			used[t.device][t.slot] += sign * t.amount
		}
	}
}

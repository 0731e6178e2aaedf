package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The head of a queue that has waited long enough gets a reservation: the first moment at
// which it fits, by the known ends of sessions, and the agents where it fits then. This is
// EASY backfilling (Lifka 1995) on concrete devices. A later request can take free devices of
// these agents
//
//   - if it has certainly ended before this moment, or
//   - if it fits beside everything that will be in use from then on, the head included.
//
// So requests that pass the head do not delay it: its devices are free at that moment at the
// latest, and the same holds in every later pass. If no ends are known, the agents that lack
// the least are reserved, and only devices that the head does not need there can be taken.

// keep is the reservation of an agent for waiting requests.
type keep struct {
	soon [][]int64 // usage after all ending sessions have ended and all promises are kept; nil: as now
	then [][]int64 // usage from the moment on, the head included; nil: nothing is reserved
	at   time.Time // that moment; zero: unknown
}

// kept returns the reservation of an agent, or nil.
func (q *queue) kept(i int) *keep {
	if k := q.keeps[i]; k != nil && q.c.agents[i].held {
		return k
	}
	return nil
}

// keep begins a reservation of an agent.
func (q *queue) keep(i int) *keep {
	k := q.kept(i)
	if k == nil {
		k = &keep{}
		q.keeps[i] = k
		a := &q.c.agents[i]
		a.held = true
		q.c.settle(a)
	}
	return k
}

// soon returns the usage of an agent after all ending sessions have ended and all promises are
// kept.
func (q *queue) soon(i int) [][]int64 {
	if k := q.kept(i); k != nil && k.soon != nil {
		return most(k.soon, nil)
	}
	used := q.c.usage(i)
	q.lives(q.c.agents[i].src.Group)
	add(used, i, q.leaving[i], -1)
	return used
}

// beside takes a kernel's devices on a reserved agent if the reservation allows it.
func (q *queue) beside(s *shape, r *Request) int {
	best, least := -1, unfit
	var take []taking
	for _, i := range slices.Sorted(maps.Keys(q.keeps)) {
		a := &q.c.agents[i]
		if q.kept(i) == nil || !s.profile.hosts[a.host] || q.excluded(r, a) || q.c.solitary(len(r.Kernels), a) {
			continue
		}
		if score, takings := q.tryBeside(s, r, i); score < least {
			best, least, take = i, score, takings
		}
	}
	if best < 0 {
		return -1
	}
	for _, t := range take {
		q.c.take(t.agent, t.device, t.slot, t.amount)
	}
	q.c.refresh(&q.c.agents[best])
	return best
}

// tryBeside scores a kernel on a reserved agent, and takes nothing.
func (q *queue) tryBeside(s *shape, r *Request, i int) (score float64, takings []taking) {
	now := q.c.become(i, q.spare(i, r))
	defer q.c.become(i, now)
	if !q.c.agents[i].mayFit(q.c, s.needs) {
		return unfit, nil
	}
	mark := len(q.c.taken)
	score, pick := q.best(s, i)
	if score == unfit || !q.c.fitFrom(i, s.steps, pick) {
		return unfit, nil
	}
	takings = slices.Clone(q.c.taken[mark:])
	q.c.taken = q.c.taken[:mark] // become undoes the charges
	return score, takings
}

// spare returns the usage of a reserved agent that a request must assume: the maximum over the
// time in which it runs.
func (q *queue) spare(i int, r *Request) [][]int64 {
	k, used := q.kept(i), q.c.usage(i)
	used = most(used, plus(k.soon, i, q.c.taken))
	if k.then != nil && !q.before(r, k.at) {
		used = most(used, plus(k.then, i, q.c.taken))
	}
	return used
}

// plus adds the journal's entries of an agent to its usage.
func plus(used [][]int64, i int, journal []taking) [][]int64 {
	if used == nil {
		return nil
	}
	out := most(used, nil)
	add(out, i, journal, 1)
	return out
}

// before reports whether a request that is placed now has certainly ended at a time.
func (q *queue) before(r *Request, at time.Time) bool {
	return r.Lifetime > 0 && !at.IsZero() && !q.now.Add(r.Lifetime).After(at)
}

// settled adds the devices of a placed request to the reservations.
func (q *queue) settled(r *Request, takings []taking) {
	for i := range q.keeps {
		k := q.kept(i)
		if k == nil {
			continue
		}
		add(k.soon, i, takings, 1)
		if k.then != nil && !q.before(r, k.at) {
			add(k.then, i, takings, 1)
		}
	}
	if r.Lifetime > 0 {
		x := &Running{SessionID: r.SessionID, Group: r.Group, Ends: q.now.Add(r.Lifetime)}
		q.placed = append(q.placed, live{Running: x, holds: slices.Clone(takings)})
	}
	q.joined(r, takings)
}

// reserve finds the moment and the agents at which the head of a queue fits, and reserves the
// agents. The moment can be unknown, but without agents nothing is reserved.
func (q *queue) reserve(r *Request, shapes []*shape) (at time.Time, ok bool) {
	f := q.future()
	agents := shapes[0].profile.agents
	f.open(agents)
	kernels, at := f.first(agents, shapes, q.ending(r.Group))
	needs := slices.Concat(kernels...)
	if kernels == nil {
		f.close()
		return time.Time{}, q.hold(shapes)
	}
	then := map[int][][]int64{}
	for _, i := range agentsOf(needs) {
		then[i] = q.c.usage(i)
		add(then[i], i, q.c.alone(i, then[i], needs), 1)
	}
	f.close()
	for _, i := range slices.Sorted(maps.Keys(then)) {
		k := q.keep(i)
		k.then, k.at = then[i], at
	}
	return at, true
}

// first ends sessions one after the other until the kernels fit.
func (f *future) first(agents []int, shapes []*shape, ending []live) (needs [][]taking, at time.Time) {
	g := f.q.c.gangSearch(shapes)
	if g.look(agents) {
		if needs := g.fit(); needs != nil {
			return needs, f.q.now
		}
	}
	for n := 0; n < len(ending); {
		at := ending[n].Ends
		var changed []int
		for ; n < len(ending) && ending[n].Ends.Equal(at); n++ {
			changed = append(changed, f.release(ending[n].holds)...)
		}
		if !g.look(changed) {
			continue
		}
		if needs := g.fit(); needs != nil {
			if at.Before(f.q.now) {
				at = f.q.now // an overdue session
			}
			return needs, at
		}
	}
	return nil, time.Time{}
}

// hold chooses for every kernel the agent that lacks least, among those on which it would fit
// if they were empty, and reserves what the kernels need there.
func (q *queue) hold(shapes []*shape) bool {
	candidates := slices.Clone(shapes[0].profile.agents)
	lack := make(map[int]float64, len(candidates))
	for _, a := range candidates {
		lack[a] = q.lackOf(&q.c.agents[a], shapes)
	}
	slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(lack[a], lack[b]) })
	on := q.onEmpty(candidates, shapes)
	if on == nil {
		return false // it would not fit on an empty group either
	}
	needed := map[int][]need{}
	for k, i := range on {
		needed[i] = append(needed[i], shapes[k].needs...)
	}
	for _, i := range slices.Sorted(maps.Keys(needed)) {
		k := q.keep(i)
		k.at, k.then = time.Time{}, q.c.closed(i, needed[i])
	}
	return true
}

// onEmpty finds an agent for each kernel as if all agents were empty.
func (q *queue) onEmpty(agents []int, shapes []*shape) (on []int) {
	f := q.future()
	defer f.close()
	f.empty(agents)
	g := q.c.gangSearch(shapes)
	if g.look(agents); g.fit() == nil {
		return nil
	}
	return g.at
}

// closed returns the usage of an agent from which nothing more of the needs can be taken: the
// needed amount of pooled slots, and all of the requested accelerators. So the lacking amount
// can only decrease.
func (c *cluster) closed(i int, needs []need) [][]int64 {
	used := c.usage(i)
	for _, n := range needs {
		left := n.amount
		for j := range c.agents[i].devices {
			d := &c.agents[i].devices[j]
			if family := c.slots[n.slot].family; family != "" {
				if d.family == family {
					c.fill(i, j, used)
				}
				continue
			}
			if free := min(left, d.capacity[n.slot]-used[j][n.slot]); free > 0 && d.usable {
				used[j][n.slot] += free
				left -= free
			}
		}
	}
	return used
}

// alone returns the devices that must stay free in addition to those of a promise: devices
// that a request takes as a whole must be idle, and so must all devices over which an amount
// is spread evenly.
func (c *cluster) alone(i int, used [][]int64, needs []taking) (extra []taking) {
	a := &c.agents[i]
	mine := map[int]bool{} // devices, and whether they must be idle
	count := map[string]int{}
	for _, t := range needs {
		if family := c.slots[t.slot].family; t.agent == i && family != "" {
			if _, known := mine[t.device]; !known {
				count[family]++
			}
			mine[t.device] = mine[t.device] || t.amount == a.devices[t.device].capacity[t.slot]
		}
	}
	for j, idle := range mine {
		if !idle && (a.split != SplitEvenly || count[a.devices[j].family] < 2) {
			continue
		}
		for s, amount := range a.devices[j].capacity {
			if left := amount - used[j][s]; left > 0 {
				extra = append(extra, taking{i, j, s, left})
			}
		}
	}
	return extra
}

// fill marks a device as fully used.
func (c *cluster) fill(i, j int, used [][]int64) {
	for s, amount := range c.agents[i].devices[j].capacity {
		used[j][s] = max(used[j][s], amount)
	}
}

// lackOf sums the missing fractions of the needs over distinct kernels.
func (q *queue) lackOf(a *agent, shapes []*shape) float64 {
	sum := 0.0
	for i, s := range shapes {
		if slices.Contains(shapes[:i], s) {
			continue
		}
		for _, n := range s.needs {
			sum += lack(n, a.reach(q.c, n))
		}
	}
	return sum
}

package plan

import (
	"cmp"
	"maps"
	"slices"
)

// maxOnOne limits the agents that are tried for all kernels of a session, per rank of agents.
const maxOnOne = 4

// placeOnOne finds one agent for all kernels of a session, so that they share a host: the best
// agent for the first kernel among those with enough for all by the sums of free amounts.
func (q *queue) placeOnOne(r *Request, shapes []*shape, d *Decision) bool {
	total := make([]int64, len(q.c.slots))
	q.c.sumUp(total, r)
	start := len(q.c.taken)
	var tried []uint64 // states of agents
	for _, place := range q.orders(r) {
		for range maxOnOne {
			a := q.choose(shapes[0], func(a *agent) bool {
				return q.order(r, a) == place && !q.excluded(r, a) && a.part(total) == 1 && !slices.Contains(tried, a.key)
			})
			if a < 0 {
				break
			}
			if q.follow(a, r, shapes, start, d) {
				return true
			}
			q.c.undo(start)
			tried = append(tried, q.c.agents[a].key)
		}
	}
	return false
}

// follow places the other kernels on the agent of the first one.
func (q *queue) follow(on int, r *Request, shapes []*shape, start int, d *Decision) bool {
	list := []Assignment{q.c.assignment(r.Kernels[0].ID, start)}
	for i, s := range shapes[1:] {
		mark := len(q.c.taken)
		if q.choose(s, func(a *agent) bool { return int(a.number) == on }) < 0 {
			return false
		}
		list = append(list, q.c.assignment(r.Kernels[i+1].ID, mark))
	}
	d.Assignments = list
	return true
}

// placeAll searches places for all kernels of a session after choosing the best place for each
// has failed.
func (q *queue) placeAll(r *Request, shapes []*shape, lacking *shape, d *Decision) bool {
	if len(shapes) == 1 {
		return false
	}
	f, begin := q.spared(r, lacking), len(q.c.taken)
	g := q.c.gangSearch(shapes)
	found := q.offer(g, lacking, r)
	for _, s := range shapes {
		found = found && (len(g.on[s]) > 0 || q.offer(g, s, r))
	}
	var needs [][]taking
	if found {
		needs = g.fit()
	}
	q.c.undo(begin)
	f.close()
	for k := range needs {
		mark := len(q.c.taken)
		q.grant(needs[k])
		d.Assignments = append(d.Assignments, q.c.assignment(r.Kernels[k].ID, mark))
	}
	return needs != nil
}

// spared sets agents that are reserved for others to the state that a request can use.
func (q *queue) spared(r *Request, s *shape) *future {
	f := q.future()
	for i := range q.keeps {
		if a := &q.c.agents[i]; q.kept(i) != nil && s.profile.hosts[a.host] && !q.excluded(r, a) && !q.c.solitary(len(r.Kernels), a) {
			f.set(i, q.spare(i, r))
		}
	}
	return f
}

// offer adds the agents for a kernel to a search, in the order of find, and reports whether
// any has room.
func (q *queue) offer(g *gangSearch, s *shape, r *Request) bool {
	l := s.classes()
	live := slices.DeleteFunc(slices.Clone(l.live), func(n int32) bool { return q.scored(s, n) == unfit })
	slices.SortFunc(live, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.score[a], s.score[b]), cmp.Compare(l.all[a].key, l.all[b].key))
	})
	for _, place := range q.orders(r) {
		for _, n := range live {
			for _, i := range l.all[n].members {
				if len(g.on[s]) == len(g.shapes) {
					return true
				}
				if a := &q.c.agents[i]; q.order(r, a) == place && !q.excluded(r, a) && !q.c.solitary(len(r.Kernels), a) {
					g.on[s] = append(g.on[s], int(i))
				}
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(q.keeps)) {
		a := &q.c.agents[i]
		if q.kept(i) == nil || !s.profile.hosts[a.host] || q.excluded(r, a) || q.c.solitary(len(r.Kernels), a) {
			continue
		}
		if len(g.on[s]) < len(g.shapes) && g.has(i, s) {
			g.on[s] = append(g.on[s], i)
		}
	}
	return len(g.on[s]) > 0
}

// grant takes devices that are known to be free.
func (q *queue) grant(needs []taking) {
	for _, t := range needs {
		q.c.take(t.agent, t.device, t.slot, t.amount)
	}
	for _, i := range agentsOf(needs) {
		q.turn++
		q.c.agents[i].last = q.now.Add(q.turn)
		q.c.refresh(&q.c.agents[i])
	}
}

// solitary reports whether an agent can run only all kernels of a session or none, because it
// has no network in common with other agents.
func (c *cluster) solitary(kernels int, a *agent) bool {
	return kernels > 1 && (a.src.Alone != "" || c.networked != nil && kernels > *c.networked)
}

// part returns the fraction of amounts, up to 1, that an agent has free by the sums.
func (a *agent) part(amounts []int64) float64 {
	part := 1.0
	for slot, amount := range amounts {
		if free := a.free[slot]; free < amount {
			part = min(part, float64(free)/float64(amount))
		}
	}
	return part
}

// sumUp adds all amounts of a request.
func (c *cluster) sumUp(amounts []int64, r *Request) {
	for i := range r.Kernels {
		for name, amount := range r.Kernels[i].Slots {
			amounts[c.number[name]] += amount
		}
	}
}

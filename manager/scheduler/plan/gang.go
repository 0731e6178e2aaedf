package plan

import "slices"

// maxOnOne bounds the agents that are tried for all kernels of a session, per
// place in the order of agents.
const maxOnOne = 4

// placeOnOne finds one agent for all kernels of a session, where they share a
// network: that on which the first kernel finds its best place, among those with
// room for all as far as sums tell.
func (q *queue) placeOnOne(r *Request, shapes []*shape, d *Decision) bool {
	total := make([]int64, len(q.c.slots))
	for _, s := range shapes {
		for _, n := range s.needs {
			total[n.slot] += n.amount
		}
	}
	start := len(q.c.taken)
	var tried []uint64 // states of agents
	for _, place := range q.orders(r) {
		for range maxOnOne {
			a := q.choose(shapes[0], func(a *agent) bool {
				return q.order(r, a) == place && !q.barred(r, a) && a.has(total) && !slices.Contains(tried, a.key)
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

// follow places the other kernels on the agent that the first one is on.
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

// has tells whether the sums of what is free are no less than these.
func (a *agent) has(amounts []int64) bool {
	for slot, amount := range amounts {
		if amount > a.free[slot] {
			return false
		}
	}
	return true
}

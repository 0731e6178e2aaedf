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
	q.c.sumUp(total, r)
	start := len(q.c.taken)
	var tried []uint64 // states of agents
	for _, place := range q.orders(r) {
		for range maxOnOne {
			a := q.choose(shapes[0], func(a *agent) bool {
				return q.order(r, a) == place && !q.barred(r, a) && a.part(total) == 1 && !slices.Contains(tried, a.key)
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

// part is which part of amounts, up to all, an agent has room for as far as the
// sums of what is free tell.
func (a *agent) part(amounts []int64) float64 {
	part := 1.0
	for slot, amount := range amounts {
		if free := a.free[slot]; free < amount {
			part = min(part, float64(free)/float64(amount))
		}
	}
	return part
}

// sumUp adds all that a request asks for.
func (c *cluster) sumUp(amounts []int64, r *Request) {
	for i := range r.Kernels {
		for name, amount := range r.Kernels[i].Slots {
			amounts[c.number[name]] += amount
		}
	}
}

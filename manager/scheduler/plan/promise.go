package plan

import (
	"slices"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// promise is the devices that a request gets after the ending sessions have ended.
type promise struct {
	needs [][]taking // by kernel
	extra []taking   // see Alone
	room  *report.Room
}

func (p *promise) all() []taking { return slices.Concat(p.needs...) }

// vow makes a promise.
func (q *queue) vow(r *Request, p *promise) {
	needs := p.all()
	for _, i := range agentsOf(needs) {
		k := q.keep(i)
		if k.soon == nil {
			k.soon = q.soon(i)
		}
		add(k.soon, i, needs, 1)
		extra := q.c.alone(i, k.soon, needs)
		add(k.soon, i, extra, 1)
		p.extra = append(p.extra, extra...)
	}
	q.promises[r.SessionID] = p
}

// prepare begins a pass: it renews the promises before any other request is placed.
func (q *queue) prepare() {
	q.ready = true
	q.live, q.leaving, q.placed, q.members = nil, nil, nil, nil
	clear(q.keeps)
	clear(q.victims)
	clear(q.promises)
	clear(q.vain)
	var list []*Request
	for i := range q.src.Pending {
		if r := &q.src.Pending[i]; r.Room != nil {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, before)
	for _, r := range list {
		q.renew(r)
	}
}

// renew renews the promise of a request, unless it can no longer be kept.
func (q *queue) renew(r *Request) {
	g := q.groups[r.Group]
	if g == nil || r.held(q.now) != "" || len(q.limits.Reached(r)) > 0 {
		return
	}
	p := q.recall(r)
	if p == nil {
		return
	}
	leaving := false
	for _, i := range agentsOf(p.all()) {
		soon := q.soon(i)
		add(soon, i, p.all(), 1)
		for j := range soon {
			for s, amount := range soon[j] {
				if amount > q.c.agents[i].devices[j].capacity[s] {
					return
				}
			}
		}
		leaving = leaving || len(q.leaving[i]) > 0
	}
	if leaving || q.due(p) {
		q.vow(r, p)
		q.limits.Charge(r)
	}
}

// recall reads a promise; nil if its devices no longer exist, or do not match the request.
func (q *queue) recall(r *Request) *promise {
	p := &promise{room: r.Room, needs: make([][]taking, len(r.Kernels))}
	q.lives(r.Group)
	agents := q.profileOf(q.groups[r.Group], r).agents
	for _, part := range r.Room.Parts {
		at, here := q.spots[part.Device]
		slot, known := q.c.number[part.Slot]
		k := slices.IndexFunc(r.Kernels, func(k KernelRequest) bool { return k.ID == part.Kernel })
		if !here || !known || k < 0 || !slices.Contains(agents, at.agent) || !q.c.agents[at.agent].devices[at.device].usable {
			return nil
		}
		p.needs[k] = append(p.needs[k], taking{at.agent, at.device, slot, part.Amount})
	}
	for k := range r.Kernels {
		got := resource.Slots{}
		for _, t := range p.needs[k] {
			got[q.c.slots[t.slot].name] += t.amount
		}
		for name, amount := range r.Kernels[k].Slots {
			if got[name] != amount {
				return nil
			}
		}
	}
	return p
}

// due reports whether the promised devices are free.
func (q *queue) due(p *promise) bool {
	for _, i := range agentsOf(p.all()) {
		soon := q.soon(i)
		for _, t := range p.all() {
			if t.agent != i {
				continue
			}
			for s, used := range q.c.agents[i].devices[t.device].used {
				if used > soon[t.device][s] {
					return false
				}
			}
		}
	}
	return true
}

// redeem places a request on its promised devices if they are free.
func (q *queue) redeem(r *Request, p *promise, d *Decision) bool {
	q.promised(p, -1)
	if !q.due(p) {
		q.promised(p, 1)
		return false
	}
	for k, needs := range p.needs {
		mark := len(q.c.taken)
		q.grant(needs)
		d.Assignments = append(d.Assignments, q.c.assignment(r.Kernels[k].ID, mark))
	}
	delete(q.promises, r.SessionID)
	return true
}

// promised adds a promise to the reservations of its agents, or removes it.
func (q *queue) promised(p *promise, sign int64) {
	for _, i := range agentsOf(p.all()) {
		if k := q.kept(i); k != nil {
			for _, takings := range [][]taking{p.all(), p.extra} {
				add(k.soon, i, takings, sign)
				add(k.then, i, takings, sign)
			}
		}
	}
}

package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// Planner decides like Plan, repeatedly, on a cluster that changes little between calls. While
// nothing is freed, requests that did not fit still do not fit, so only new requests are
// decided. Freed devices are first checked against the shapes of waiting requests: if none of
// them fits there, the requests keep waiting. Otherwise, and if a limit, an order or the time
// requires it, everything is decided again, but on the cluster that is already in memory.
//
// The Planner counts its placements as allocated. If a placement was not carried out, the
// caller must name its agents in the next call.
type Planner struct {
	q     *queue
	at    map[uuid.UUID]int // index of agents in the cluster
	waits map[uuid.UUID]wait
	stuck map[string]*stuck     // requests without room, by shapes
	heads map[uuid.UUID]*head   // by group
	timed map[uuid.UUID]Request // requests that wait for a time

	limited int // number of requests that wait for a limit

	foreseen map[uuid.UUID]time.Time // estimated starts from the last review
}

// wait is the reason why a request waits: for room under a key, for a limit, or for a
// condition outside of the cluster.
type wait struct {
	key     string
	limited bool
}

// head is the first request of a group that has no room.
type head struct {
	Request
	tried bool // it has waited long enough that a reservation was tried
	held  bool // some agents are reserved
}

// stuck are the requests with equal shapes that have no room.
type stuck struct {
	shapes []*shape
	count  int
}

// Change is the difference between a snapshot and that of the previous call.
type Change struct {
	All    bool        // everything may have changed
	Agents []uuid.UUID // whose devices' usage has changed
	Limits bool        // the usage of limits has changed, other than by placements
	New    []Request   // new or changed
	Gone   []uuid.UUID // sessions that no longer wait for a reason other than placement
	Review bool        // nothing has changed, but everything is to be decided again
}

// maxClasses is the number of agent states in memory, per agent, after which the Planner starts
// with a new cluster.
const maxClasses = 16

// Decide returns decisions on all waiting requests, or only on new ones. Between calls without
// All, the order of the snapshot's agents must not change.
func (p *Planner) Decide(s *Snapshot, c Change) []Decision {
	decisions := p.redo(s, c)
	if c.Review {
		p.foreseen = foresee(s, decisions)
	}
	for i := range decisions {
		at, known := p.foreseen[decisions[i].SessionID]
		switch w := decisions[i].Waiting; {
		case w == nil || !known:
		case at.After(s.Now):
			w.EstimatedStart = &at
		case at.IsZero():
			w.EstimatedStart = nil
		}
	}
	return decisions
}

// redo decides on the requests that a change affects.
func (p *Planner) redo(s *Snapshot, c Change) []Decision {
	if p.q == nil || c.All || p.full() || p.strange(s, c) {
		return p.begin(s)
	}
	p.q.src, p.q.now = s, s.Now
	p.q.live, p.q.leaving, p.q.members = nil, nil, nil
	fresh := p.fresh(c)
	again := p.freed(c.Agents) || c.Review
	if c.Limits {
		p.q.limits = NewLedger(s.Limits)
		again = again || p.limited > 0
	}
	if again || p.headGone() || p.headDue() || p.passes(fresh) {
		p.q.again()
		return p.all(s)
	}
	return p.some(s, fresh)
}

// strange reports whether a change has slots that the cluster does not know.
func (p *Planner) strange(s *Snapshot, c Change) bool {
	unknown := func(slots resource.Slots) bool { return !p.q.c.numbers(slots) }
	for i := range c.New {
		if slices.ContainsFunc(c.New[i].Kernels, func(k KernelRequest) bool { return unknown(k.Slots) }) {
			return true
		}
	}
	for _, id := range c.Agents {
		i, ok := p.at[id]
		if !ok || slices.ContainsFunc(p.q.c.agents[i].src.Devices, func(d Device) bool { return unknown(d.Used) }) {
			return true
		}
	}
	return false
}

// begin starts with a new cluster.
func (p *Planner) begin(s *Snapshot) []Decision {
	p.q = newQueue(s)
	p.at = make(map[uuid.UUID]int, len(p.q.c.agents))
	for i := range p.q.c.agents {
		p.at[p.q.c.agents[i].src.ID] = i
	}
	return p.all(s)
}

// full reports whether too many states are in memory.
func (p *Planner) full() bool {
	for _, g := range p.q.groups {
		if n := len(g.classes.all); n > 1000 && n > maxClasses*len(g.agents) {
			return true
		}
	}
	return len(p.q.shapes) > 100_000
}

func (p *Planner) all(s *Snapshot) []Decision {
	p.waits, p.stuck = make(map[uuid.UUID]wait, len(s.Pending)), map[string]*stuck{}
	p.heads, p.timed = map[uuid.UUID]*head{}, map[uuid.UUID]Request{}
	p.limited = 0
	decisions := inOrder(s, p.decide)
	for _, h := range p.heads {
		h.tried = p.due(h)
	}
	return decisions
}

// some decides on some of the waiting requests.
func (p *Planner) some(s *Snapshot, requests []Request) []Decision {
	if len(requests) == 0 {
		return nil
	}
	sub := *s
	sub.Pending = requests
	return inOrder(&sub, p.decide)
}

// decide records how the decided request waits.
func (p *Planner) decide(r *Request) Decision {
	d := p.q.decide(r)
	g := p.q.groups[r.Group]
	if d.Placed() || g == nil {
		return d
	}
	switch {
	case r.held(p.q.now) != "":
		p.timed[r.SessionID] = *r
	case len(d.Waiting.Limits) > 0:
		p.waits[r.SessionID] = wait{limited: true}
		p.limited++
	default:
		p.note(g, r)
	}
	return d
}

// note records that a request has no room.
func (p *Planner) note(g *group, r *Request) {
	shapes := p.q.shapesOf(g, r)
	if len(shapes) == 0 {
		return
	}
	key := keyOf(shapes)
	st := p.stuck[key]
	if st == nil {
		st = &stuck{shapes: shapes}
		p.stuck[key] = st
	}
	st.count++
	p.waits[r.SessionID] = wait{key: key}
	if h := p.heads[r.Group]; h == nil || p.precedes(r, &h.Request) {
		held := slices.ContainsFunc(g.agents, func(a int) bool { return p.q.c.agents[a].held })
		p.heads[r.Group] = &head{Request: *r, held: held}
	}
}

// forget removes the records of a request.
func (p *Planner) forget(session uuid.UUID) {
	w, ok := p.waits[session]
	delete(p.timed, session)
	if !ok {
		return
	}
	delete(p.waits, session)
	if w.limited {
		p.limited--
	} else if st := p.stuck[w.key]; st != nil {
		if st.count--; st.count == 0 {
			delete(p.stuck, w.key)
		}
	}
}

// fresh removes ended requests, and returns the requests to decide: new ones, and those whose
// time has come.
func (p *Planner) fresh(c Change) []Request {
	for _, id := range c.Gone {
		p.forget(id)
	}
	for i := range c.New {
		p.forget(c.New[i].SessionID)
	}
	list := c.New
	for id, r := range p.timed {
		if r.held(p.q.now) == "" {
			delete(p.timed, id)
			list = append(list, r)
		}
	}
	return list
}

// freed updates the usage of agents, and reports whether a waiting request may fit because of
// that.
func (p *Planner) freed(ids []uuid.UUID) bool {
	fits := false
	for _, id := range ids {
		i := p.at[id]
		if a := &p.q.c.agents[i]; p.q.c.adopt(a) && !fits {
			fits = a.held || p.suitsAny(i)
		}
	}
	return fits
}

// adopt sets the usage of an agent to that of its source, and reports whether any of it was
// freed.
func (c *cluster) adopt(a *agent) (freed bool) {
	changed := false
	for i := range a.devices {
		d := &a.devices[i]
		used := make([]int64, len(d.used))
		for name, amount := range d.src.Used {
			used[c.number[name]] = amount
		}
		if slices.Equal(used, d.used) {
			continue
		}
		for s := range used {
			freed = freed || used[s] < d.used[s]
		}
		c.swap(a, d, used)
		changed = true
	}
	a.last = a.src.LastUsed
	if changed {
		c.refresh(a)
	}
	return freed
}

// suitsAny reports whether a kernel of a waiting request would fit on an agent.
func (p *Planner) suitsAny(i int) bool {
	a := &p.q.c.agents[i]
	for _, st := range p.stuck {
		for _, s := range st.shapes {
			if !s.profile.hosts[a.host] || !a.mayFit(p.q.c, s.needs) {
				continue
			}
			if mark := len(p.q.c.taken); p.q.c.fit(i, s.steps) {
				p.q.c.undo(mark)
				return true
			}
		}
	}
	return false
}

// headGone reports whether the head of a queue no longer waits: another request is the head
// now, and the reservations are outdated.
func (p *Planner) headGone() bool {
	for _, h := range p.heads {
		if _, waits := p.waits[h.SessionID]; !waits {
			return true
		}
	}
	return false
}

// due reports whether the head of a queue has waited long enough for a reservation.
func (p *Planner) due(h *head) bool {
	after := cmp.Or(p.q.groups[h.Group].src.HoldAfter, DefaultHoldAfter)
	return after >= 0 && p.q.now.Sub(h.Created) >= after
}

func (p *Planner) headDue() bool {
	for _, h := range p.heads {
		if !h.tried && p.due(h) {
			return true
		}
	}
	return false
}

// passes reports whether a new request comes before one with a reservation, so that the
// reservation does not apply to it.
func (p *Planner) passes(fresh []Request) bool {
	return slices.ContainsFunc(fresh, func(r Request) bool {
		h := p.heads[r.Group]
		return h != nil && h.held && p.precedes(&r, &h.Request)
	})
}

// precedes compares requests of a group, as far as the requests alone determine the order.
func (p *Planner) precedes(a, b *Request) bool {
	switch g := p.q.groups[a.Group]; {
	case a.Priority != b.Priority:
		return a.Priority > b.Priority
	case g.src.Order == OrderLIFO:
		return before(b, a) < 0
	case g.src.Order == OrderFIFO || g.src.Order == "":
		return before(a, b) < 0
	}
	return false
}

// again prepares the cluster in memory for deciding everything again.
func (q *queue) again() {
	q.limits = NewLedger(q.src.Limits)
	clear(q.failed)
	for i := range q.c.agents {
		if a := &q.c.agents[i]; a.held {
			a.held = false
			q.c.settle(a)
		}
	}
	told := false
	q.ready = false
	for _, g := range q.groups {
		g.waiting, g.headed, g.moment = 0, false, time.Time{}
		if g.mixture != nil && !slices.ContainsFunc(q.src.Demand, func(d Demand) bool { return d.Group == g.src.ID }) {
			g.mixture, told = nil, true // it was computed from the pending requests
		}
	}
	if told {
		clear(q.shapes)
	}
}

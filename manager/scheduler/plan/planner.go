package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// Planner decides as Plan does, again and again, over a cluster that changes
// little meanwhile. As long as nothing is given back, devices only fill up, so
// what had no room has none still and only new requests are decided on. What is
// given back is first held against the shapes that wait: unless one of them fits
// there, they continue waiting. Then, and when a limit, an order or the time says
// so, everything is decided again, but on the cluster that is already known.
//
// What it placed it takes for held from then on. Where that did not come true,
// the caller names the agents.
type Planner struct {
	q     *queue
	at    map[uuid.UUID]int // agents in the cluster
	waits map[uuid.UUID]wait
	stuck map[string]*stuck     // who waits for room, by shapes
	heads map[uuid.UUID]*head   // by group
	timed map[uuid.UUID]Request // what waits for a time

	limited int // how many wait for a limit

	foreseen map[uuid.UUID]time.Time // when requests start, as the last review found
}

// wait is how a request waits: for room under a key, for a limit, or for
// something that is none of the cluster's.
type wait struct {
	key     string
	limited bool
}

// head is the first of a group that has no room.
type head struct {
	Request
	tried bool // to hold agents for it, as it has waited long enough
	held  bool // some are
}

// stuck are the requests of the same shapes that have no room.
type stuck struct {
	shapes []*shape
	count  int
}

// Change is what of a snapshot differs from that of the call before.
type Change struct {
	All    bool        // anything may
	Agents []uuid.UUID // what is used of their devices
	Limits bool        // what is used of limits, other than by what was placed
	New    []Request   // that are new, or different
	Gone   []uuid.UUID // requests that do not wait any more, other than by being placed
	Review bool        // nothing does, but everything is to be decided again
}

// maxClasses is how many states of agents are remembered, per agent, before all
// is counted again.
const maxClasses = 16

// Decide returns what is decided again: on everything that waits, or only on what
// is new. Between two calls that do not change All the snapshot's agents have to
// stay where they are.
func (p *Planner) Decide(s *Snapshot, c Change) []Decision {
	decisions := p.anew(s, c)
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

// again decides on what a change bears on.
func (p *Planner) anew(s *Snapshot, c Change) []Decision {
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

// strange reports whether a change has slots that the cluster never had.
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

// begin forgets everything.
func (p *Planner) begin(s *Snapshot) []Decision {
	p.q = newQueue(s)
	p.at = make(map[uuid.UUID]int, len(p.q.c.agents))
	for i := range p.q.c.agents {
		p.at[p.q.c.agents[i].src.ID] = i
	}
	return p.all(s)
}

// full reports whether too much is remembered.
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

// some decides on some of what waits.
func (p *Planner) some(s *Snapshot, requests []Request) []Decision {
	if len(requests) == 0 {
		return nil
	}
	sub := *s
	sub.Pending = requests
	return inOrder(&sub, p.decide)
}

// decide notes how what is decided on waits.
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

// note remembers that a request has no room.
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

// forget takes back what note and decide remembered.
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

// fresh forgets what is named, and lists what is to be decided on: what is new,
// and that whose time has come.
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

// freed takes over what is used of the agents' devices, and reports whether
// something that waits may have room because of that.
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

// adopt makes an agent what its source says, and reports whether any of it is
// free that was not.
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

// suitsAny reports whether a kernel of anything that waits would fit an agent.
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

// headGone reports whether the head of a queue is gone: another one is now, and
// what is held was held for that.
func (p *Planner) headGone() bool {
	for _, h := range p.heads {
		if _, waits := p.waits[h.SessionID]; !waits {
			return true
		}
	}
	return false
}

// due reports whether the head of a queue has waited long enough for agents to be
// held for it.
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

// passes reports whether a new request comes before one for which agents are held,
// so that it is not bound by that.
func (p *Planner) passes(fresh []Request) bool {
	return slices.ContainsFunc(fresh, func(r Request) bool {
		h := p.heads[r.Group]
		return h != nil && h.held && p.precedes(&r, &h.Request)
	})
}

// precedes is the order within a group, as far as the requests alone tell.
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

// again lets everything be decided again on the cluster as it is known.
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
			g.mixture, told = nil, true // it went by what was pending
		}
	}
	if told {
		clear(q.shapes)
	}
}

package scheduler

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session"
)

const (
	// beginning is the assumed duration of a start, which does not count as lifetime:
	// most images are already on the agent. Once a session runs, its start is known.
	beginning = time.Minute
	// leaving is the assumed duration of an end: the grace period and SIGKILL.
	leaving = 30 * time.Second
)

// terms are the conditions under which a session runs.
type terms struct {
	started     time.Time // zero: it does not run yet
	lifetime    *int      // seconds, its own
	preemptible bool
	together    uuid.UUID // its session group, if any
}

// bound computes the longest duration of a request from its own lifetime and the limits.
func (m *model) bound(l *live) {
	if most := m.lifetime(l); most > 0 {
		l.request.Lifetime = beginning + most + leaving
	} else {
		l.request.Lifetime = 0
	}
}

func (m *model) lifetime(l *live) time.Duration {
	at := policy.Place{
		Domain: l.request.Domain, Project: l.request.Project, User: l.request.Owner, Group: l.request.Group, Keypair: l.request.Keypair,
	}
	return session.Lifetime(m.bounds, at, l.lifetime)
}

// runs adds a session to the sessions with allocations, updates it or removes it.
func (m *model) runs(id uuid.UUID, now *live) {
	i, known := m.running[id]
	allocated := now != nil && len(now.allocs) > 0
	switch {
	case allocated && known:
		m.snap.Running[i] = m.runner(id, now)
	case allocated:
		m.running[id] = len(m.snap.Running)
		m.snap.Running = append(m.snap.Running, m.runner(id, now))
	case known:
		last := len(m.snap.Running) - 1
		m.snap.Running[i] = m.snap.Running[last]
		m.running[m.snap.Running[i].SessionID] = i
		m.snap.Running = m.snap.Running[:last]
		delete(m.running, id)
	}
}

// runner converts a session with allocations to the planner's form.
func (m *model) runner(id uuid.UUID, l *live) plan.Running {
	r := &l.request
	x := plan.Running{
		SessionID: id, Owner: r.Owner, Project: r.Project, Domain: r.Domain, Group: r.Group, Priority: r.Priority,
		Since: l.started, Leaving: l.status == lifecycle.Terminating, Preemptible: l.preemptible, Together: l.together,
		Slots: resource.Slots{}, Holds: make([]plan.Alloc, 0, len(l.allocs)),
	}
	if l.status != lifecycle.Running {
		x.Since = time.Time{}
	}
	placed := l.started
	for _, h := range l.allocs {
		x.Holds = append(x.Holds, plan.Alloc{DeviceID: h.device, Slot: h.slot, Amount: h.amount})
		x.Slots[h.slot] += h.amount
		if l.started.IsZero() && h.since.After(placed) {
			placed = h.since
		}
	}
	if most := m.lifetime(l); most > 0 && slices.Contains(lifecycle.Occupying, l.status) {
		if x.Ends = placed.Add(most + leaving); l.started.IsZero() {
			x.Ends = x.Ends.Add(beginning)
		}
	}
	return x
}

// rebound replaces the limits on the lifetime of sessions.
func (m *model) rebound(limits []policy.Limit) {
	m.bounds = slices.DeleteFunc(slices.Clone(limits), func(l policy.Limit) bool { return l.MaxSessionLifetime == nil })
	for id, l := range m.live {
		m.bound(l)
		if i, waits := m.pending[id]; waits {
			m.snap.Pending[i].Lifetime = l.request.Lifetime
		}
		m.runs(id, l)
	}
}

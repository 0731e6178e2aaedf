package scheduler

import (
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// model is the cluster as the leader knows it: a snapshot that events and the leader's
// own commits update. It collects every update in change, for the planner. If the model
// differs from the rows, the rows are right and the model is repaired.
type model struct {
	snap    *plan.Snapshot
	live    map[uuid.UUID]*live
	limits  []policy.Limit // snap.Limits has their usage, in the same order
	change  plan.Change
	bounds  []policy.Limit          // the limits on the lifetime of sessions
	pending map[uuid.UUID]int       // in snap.Pending
	running map[uuid.UUID]int       // in snap.Running
	agents  map[uuid.UUID]int       // in snap.Agents
	devices map[uuid.UUID][2]int    // agent and device
	counts  map[limitScope][]int    // indexes of the limits that count a scope
	arrays  map[uuid.UUID]*array    // with members that run or wait
	members map[uuid.UUID]uuid.UUID // the arrays of sessions
	parked  []plan.Decision         // members that were held back since the last pass
}

// limitScope is the domain, project or user whose sessions a limit counts.
type limitScope struct {
	scope policy.Scope
	id    uuid.UUID
}

func newModel(now time.Time) *model {
	return &model{
		snap: &plan.Snapshot{Now: now}, live: map[uuid.UUID]*live{},
		pending: map[uuid.UUID]int{}, running: map[uuid.UUID]int{}, arrays: map[uuid.UUID]*array{}, members: map[uuid.UUID]uuid.UUID{}, change: plan.Change{All: true},
	}
}

// nameOf returns the name of an agent, "" for one that the model does not have.
func (m *model) nameOf(agent uuid.UUID) string {
	if i, ok := m.agents[agent]; ok {
		return m.snap.Agents[i].Name
	}
	return ""
}

// setAgents replaces the agents and computes their usage.
func (m *model) setAgents(list []plan.Agent) {
	m.snap.Agents, m.change.All = list, true
	m.agents, m.devices = make(map[uuid.UUID]int, len(list)), make(map[uuid.UUID][2]int, 4*len(list))
	for i := range list {
		a := &list[i]
		m.agents[a.ID] = i
		a.LastUsed = time.Time{}
		for j := range a.Devices {
			m.devices[a.Devices[j].ID] = [2]int{i, j}
			a.Devices[j].Used = resource.Slots{}
		}
	}
	for _, l := range m.live {
		m.occupy(l, 1)
	}
}

// putAgents updates the agents among ids from rows. Agents without a row are removed.
func (m *model) putAgents(ids []uuid.UUID, rows []plan.Agent) {
	now := make(map[uuid.UUID]*plan.Agent, len(rows))
	for i := range rows {
		now[rows[i].ID] = &rows[i]
	}
	differ := func(id uuid.UUID) bool {
		i, known := m.agents[id]
		a := now[id]
		return known != (a != nil) || known && !sameAgent(&m.snap.Agents[i], a)
	}
	if !slices.ContainsFunc(ids, differ) {
		return
	}
	list := slices.DeleteFunc(slices.Clone(m.snap.Agents), func(a plan.Agent) bool { return slices.Contains(ids, a.ID) })
	m.setAgents(append(list, rows...))
}

// sameAgent reports whether two states of an agent differ in nothing but the usage.
func sameAgent(a, b *plan.Agent) bool {
	bare := func(a *plan.Agent) plan.Agent {
		c := *a
		c.LastUsed, c.Devices = time.Time{}, slices.Clone(a.Devices)
		for i := range c.Devices {
			c.Devices[i].Used = nil
		}
		slices.SortFunc(c.Devices, func(a, b plan.Device) int { return slices.Compare(a.ID[:], b.ID[:]) })
		return c
	}
	return reflect.DeepEqual(bare(a), bare(b))
}

// setLimits replaces the limits and computes their usage.
func (m *model) setLimits(list []policy.Limit) {
	m.limits, m.snap.Limits, m.counts, m.change.All = list, make([]plan.Limit, len(list)), map[limitScope][]int{}, true
	for i := range list {
		l := &list[i]
		m.snap.Limits[i] = planLimit(l, policy.Used{Slots: resource.Slots{}})
		of := limitScope{l.Scope, l.ScopeID}
		if l.Scope == policy.ScopeKeypair {
			of.id = l.Person
		}
		m.counts[of] = append(m.counts[of], i)
	}
	for _, l := range m.live {
		m.count(l, 1)
	}
	m.rebound(list)
}

// put updates a session, or removes it if now is nil.
func (m *model) put(id uuid.UUID, now *live) {
	old := m.live[id]
	if old != nil {
		m.occupy(old, -1)
		m.count(old, -1)
	}
	if now == nil {
		delete(m.live, id)
	} else {
		if old != nil && old.status == now.status && old.attempt == now.attempt {
			now.request.Room = old.request.Room // its row may be behind
		}
		m.bound(now)
		m.live[id] = now
		m.occupy(now, 1)
		m.count(now, 1)
	}
	m.runs(id, now)
	m.queue(id, now)
	if old != nil && old.array.array != uuid.Nil {
		m.advance(old.array.array)
	}
}

// queue puts a session in the queue, or takes it out.
func (m *model) queue(id uuid.UUID, now *live) {
	i, queued := m.pending[id]
	waits := m.admits(id, now)
	switch {
	case waits && queued:
		if !reflect.DeepEqual(m.snap.Pending[i], now.request) {
			m.snap.Pending[i] = now.request
			m.change.New = append(m.change.New, now.request)
		}
	case waits:
		m.pending[id] = len(m.snap.Pending)
		m.snap.Pending = append(m.snap.Pending, now.request)
		m.change.New = append(m.change.New, now.request)
	case queued:
		last := len(m.snap.Pending) - 1
		m.snap.Pending[i] = m.snap.Pending[last]
		m.pending[m.snap.Pending[i].SessionID] = i
		m.snap.Pending = m.snap.Pending[:last]
		delete(m.pending, id)
		m.change.New = slices.DeleteFunc(m.change.New, func(r plan.Request) bool { return r.SessionID == id })
		m.change.Gone = append(m.change.Gone, id)
	}
}

// occupy adds the allocations of a session to the usage of devices, or subtracts them.
func (m *model) occupy(l *live, sign int64) {
	for _, h := range l.allocs {
		at, known := m.devices[h.device]
		if !known {
			continue
		}
		a := &m.snap.Agents[at[0]]
		used := a.Devices[at[1]].Used
		if used[h.slot] += sign * h.amount; used[h.slot] == 0 {
			delete(used, h.slot)
		}
		if sign > 0 && h.since.After(a.LastUsed) {
			a.LastUsed = h.since
		}
		m.touch(a.ID)
	}
}

func (m *model) touch(agent uuid.UUID) {
	if n := len(m.change.Agents); n == 0 || m.change.Agents[n-1] != agent {
		m.change.Agents = append(m.change.Agents, agent)
	}
}

// count adds a session to the usage of limits, or subtracts it.
func (m *model) count(l *live, sign int64) {
	if len(m.counts) == 0 || len(l.allocs) == 0 && !slices.Contains(lifecycle.Occupying, l.status) {
		return
	}
	for _, of := range []limitScope{
		{policy.ScopeKeypair, l.request.Owner}, {policy.ScopeUser, l.request.Owner},
		{policy.ScopeProject, l.request.Project}, {policy.ScopeDomain, l.request.Domain},
	} {
		for _, i := range m.counts[of] {
			limit := &m.snap.Limits[i]
			if limit.Group != uuid.Nil && limit.Group != l.request.Group || limit.Within != uuid.Nil && limit.Within != l.request.Project {
				continue
			}
			for _, h := range l.allocs {
				if limit.Used[h.slot] += sign * h.amount; limit.Used[h.slot] == 0 {
					delete(limit.Used, h.slot)
				}
			}
			if slices.Contains(lifecycle.Occupying, l.status) {
				limit.Sessions += int(sign)
			}
			m.change.Limits = true
		}
	}
}

// setSettings replaces everything but the agents, sessions and limits.
func (m *model) setSettings(now *plan.Snapshot) {
	was := *m.snap
	next := *now
	next.Now, next.Agents, next.Pending, next.Running, next.Limits, next.Holdings = was.Now, was.Agents, was.Pending, was.Running, was.Limits, was.Holdings
	was.Shares = next.Shares // orders read them at each decision
	m.change.All = m.change.All || !reflect.DeepEqual(was, next)
	*m.snap = next
}

// placed records a placement that has been committed. The planner decided it, so it is
// not added to change.
func (m *model) placed(id uuid.UUID, allocs []alloc) {
	now := *m.live[id]
	now.status, now.reason, now.request.Kernels = lifecycle.Scheduled, nil, nil
	now.allocs = append(slices.Clone(now.allocs), allocs...)
	now.sort()
	limits, gone := m.change.Limits, len(m.change.Gone)
	m.put(id, &now)
	m.change.Limits, m.change.Gone = limits, m.change.Gone[:gone]
}

// leftOut makes the planner decide again about a session that the commit left out.
func (m *model) leftOut(d plan.Decision) {
	for _, a := range d.Assignments {
		m.touch(a.AgentID)
	}
	m.change.Limits = true
	if i, waits := m.pending[d.SessionID]; waits {
		m.change.New = append(m.change.New, m.snap.Pending[i])
	}
}

// sums computes the holdings of the groups whose order needs them.
func (m *model) sums() {
	m.snap.Holdings = nil
	for _, g := range m.snap.Groups {
		if g.Order == plan.OrderDRF || g.Order == plan.OrderFairShare {
			m.snap.Holdings = append(m.snap.Holdings, m.holdings(g.ID)...)
		}
	}
}

// holdings sums the allocations of live sessions on the agents of a group.
func (m *model) holdings(group uuid.UUID) []plan.Holding {
	type consumer struct{ domain, project, owner uuid.UUID }
	sums := map[consumer]resource.Slots{}
	for _, l := range m.live {
		for _, h := range l.allocs {
			at, known := m.devices[h.device]
			if !known || m.snap.Agents[at[0]].Group != group {
				continue
			}
			who := consumer{l.request.Domain, l.request.Project, l.request.Owner}
			if sums[who] == nil {
				sums[who] = resource.Slots{}
			}
			sums[who][h.slot] += h.amount
		}
	}
	list := make([]plan.Holding, 0, len(sums))
	for who, slots := range sums {
		list = append(list, plan.Holding{Group: group, Domain: who.domain, Project: who.project, Owner: who.owner, Slots: slots})
	}
	return list
}

// take returns what has changed since the last call.
func (m *model) take() plan.Change {
	c := m.change
	m.change = plan.Change{}
	return c
}

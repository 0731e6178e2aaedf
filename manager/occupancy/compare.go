package occupancy

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"github.com/berthhq/berth/manager/store"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
)

// state has both sides: the reports of the agents, and the rows of one later moment.
type state struct {
	*Service
	agents  map[uuid.UUID]*ent.Agent // without removed agents
	reports map[uuid.UUID]*agentpb.Report
	live    map[uuid.UUID]map[uuid.UUID]*agentpb.KernelState // by agent and kernel, not exited
	kernels map[uuid.UUID]*ent.Kernel                        // that have not ended or run somewhere, with their sessions
	rows    []*ent.Allocation                                // live ones, with their devices
	rules   resource.Rules                                   // rules for slots of one device
	found   []Drift
}

// compareOnce compares the reports with the rows of one moment.
func (s *Service) compareOnce(ctx context.Context) (*Audit, error) {
	all, err := s.Client.Agent.Query().Where(agent.StatusNEQ(agent.StatusTerminated)).Order(agent.ByName()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	st := &state{Service: s, agents: map[uuid.UUID]*ent.Agent{}, live: map[uuid.UUID]map[uuid.UUID]*agentpb.KernelState{}}
	audit := &Audit{At: clock.Now(), Silent: []string{}}
	alive := slices.DeleteFunc(slices.Clone(all), func(a *ent.Agent) bool { return a.Status != agent.StatusAlive })
	st.reports = s.readReports(ctx, alive)
	for _, a := range all {
		st.agents[a.ID] = a
		if a.Status == agent.StatusAlive && st.reports[a.ID] == nil {
			audit.Silent = append(audit.Silent, a.Name)
		}
	}
	for id, r := range st.reports {
		st.live[id] = map[uuid.UUID]*agentpb.KernelState{}
		for _, k := range r.Kernels {
			if kid, err := uuid.Parse(k.KernelId); err == nil && k.Phase != agentpb.KernelState_EXITED {
				st.live[id][kid] = k
				audit.Kernels++
			}
		}
	}
	if err := st.read(ctx); err != nil {
		return nil, err
	}
	st.kernelsOfAgents()
	st.kernelsOfRows()
	st.checkAllocations()
	st.checkDevices()
	if err := st.name(ctx); err != nil {
		return nil, err
	}
	audit.Agents, audit.Allocations, audit.Drift = len(st.reports), len(st.rows), st.found
	return audit, nil
}

// read reads the rows of one moment.
func (st *state) read(ctx context.Context) error {
	tx, err := st.Client.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	st.rows, err = tx.Allocation.Query().Where(allocation.FreedAtIsNil()).WithDevice().Order(allocation.ByCreatedAt(), allocation.ByID()).All(ctx)
	if err != nil {
		return fmt.Errorf("read allocations: %w", err)
	}
	types, err := tx.SlotType.Query().All(ctx)
	if err != nil {
		return fmt.Errorf("read slot types: %w", err)
	}
	for _, t := range types {
		st.rules.Add(t.Name, t.Unified, t.ExclusiveWith)
	}
	ids := map[uuid.UUID]bool{}
	for _, known := range st.live {
		for id := range known {
			ids[id] = true
		}
	}
	for _, a := range st.rows {
		ids[a.KernelID] = true
	}
	st.kernels = map[uuid.UUID]*ent.Kernel{}
	with := func(where *ent.KernelQuery) error {
		list, err := where.WithSession().All(ctx)
		if err != nil {
			return fmt.Errorf("read kernels: %w", err)
		}
		for _, k := range list {
			st.kernels[k.ID] = k
			delete(ids, k.ID)
		}
		return nil
	}
	if err := with(tx.Kernel.Query().Where(kernel.TerminatedAtIsNil(), kernel.AgentIDNotNil())); err != nil {
		return err
	}
	for some := range slices.Chunk(store.IDs(ids), 10_000) {
		if err := with(tx.Kernel.Query().Where(kernel.IDIn(some...))); err != nil {
			return err
		}
	}
	return nil
}

// name adds the names of owners and projects that are in the database.
func (st *state) name(ctx context.Context) error {
	var ids []uuid.UUID
	for _, d := range st.found {
		for _, text := range []string{d.Owner, d.Project} {
			if id, err := uuid.Parse(text); err == nil {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	names := map[string]string{}
	users, err := st.Client.User.Query().Where(user.IDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("name the owners of containers: %w", err)
	}
	for _, u := range users {
		names[u.ID.String()] = u.Email
	}
	projects, err := st.Client.Project.Query().Where(project.IDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("name the projects of containers: %w", err)
	}
	for _, p := range projects {
		names[p.ID.String()] = p.Name
	}
	for i := range st.found {
		d := &st.found[i]
		d.Owner, d.Project = cmp.Or(names[d.Owner], d.Owner), cmp.Or(names[d.Project], d.Project)
	}
	return nil
}

// placed returns the kernel with that id if this is the launch that should be on this agent.
func (st *state) placed(on uuid.UUID, said *agentpb.KernelState) *ent.Kernel {
	id, _ := uuid.Parse(said.KernelId)
	k := st.kernels[id]
	if k == nil || k.AgentID == nil || *k.AgentID != on || k.TerminatedAt != nil || k.LaunchEpoch != said.LaunchEpoch ||
		!slices.Contains(lifecycle.Occupying, k.Status) {
		return nil
	}
	return k
}

// kernelsOfAgents finds kernels that run where they should not.
func (st *state) kernelsOfAgents() {
	for _, on := range store.IDs(st.live) {
		for id, said := range st.live[on] {
			if st.placed(on, said) != nil {
				continue
			}
			d := Drift{Kind: Orphan, Agent: st.agents[on].Name, Kernel: &id, repair: st.endOrphan(on, id)}
			if sid, err := uuid.Parse(said.SessionId); err == nil {
				d.Session = &sid
			}
			d.Detail = fmt.Sprintf("launch %d is %s there, and should not be", said.LaunchEpoch, phase(said))
			if k := st.kernels[id]; k == nil || k.LaunchEpoch < said.LaunchEpoch {
				d.unknown = true
				if k != nil && !k.Edges.Session.Status.Final() {
					d.waits = k.Edges.Session.Name
				}
				d.Detail = fmt.Sprintf("launch %d is %s there, and the database does not know it; it may be older than the launch", said.LaunchEpoch, phase(said))
			}
			d.Owner, d.Project = said.UserId, said.ProjectId
			st.found = append(st.found, d)
		}
	}
}

// kernelsOfRows finds kernels that should run and do not. A kernel that starts or ends is in
// transition; one that runs is there or lost.
func (st *state) kernelsOfRows() {
	for _, k := range st.kernels {
		if k.Status != lifecycle.Running || k.TerminatedAt != nil || k.AgentID == nil || st.reports[*k.AgentID] == nil {
			continue
		}
		if said := st.live[*k.AgentID][k.ID]; said == nil || said.LaunchEpoch != k.LaunchEpoch {
			st.found = append(st.found, Drift{
				Kind: Missing, Agent: st.agents[*k.AgentID].Name, Kernel: &k.ID, Session: &k.SessionID,
				Detail: fmt.Sprintf("launch %d should run there, and does not", k.LaunchEpoch), repair: st.reportMissing(*k.AgentID),
			})
		}
	}
}

// holding is the amount of a device's slot that a kernel uses.
type holding struct {
	kernel       uuid.UUID
	device, slot string
}

// checkAllocations compares the devices that kernels use with the allocations.
func (st *state) checkAllocations() {
	rows := map[holding]int64{}
	for _, a := range st.rows {
		k := st.kernels[a.KernelID]
		if k == nil || k.TerminatedAt != nil || k.AgentID == nil || *k.AgentID != a.AgentID {
			name := a.AgentID.String()
			if on := st.agents[a.AgentID]; on != nil {
				name = on.Name
			}
			st.found = append(st.found, Drift{
				Kind: Leaked, Agent: name, Device: a.Edges.Device.DeviceID, Kernel: &a.KernelID, Session: &a.SessionID,
				Detail: resource.Format(a.Slot, a.Amount) + " " + a.Slot + " are allocated to a kernel that no longer exists", repair: st.freeLeaked(a),
			})
			continue
		}
		rows[holding{a.KernelID, a.Edges.Device.DeviceID, a.Slot}] += a.Amount
	}
	for _, on := range store.IDs(st.live) {
		for id, said := range st.live[on] {
			k := st.placed(on, said)
			if k == nil {
				continue
			}
			for _, h := range said.Allocations {
				amount, err := resource.Parse(h.Slot, h.Amount)
				if err != nil || amount <= rows[holding{id, h.DeviceId, h.Slot}] {
					continue
				}
				st.found = append(st.found, Drift{
					Kind: Freed, Agent: st.agents[on].Name, Device: h.DeviceId, Kernel: &id, Session: &k.SessionID,
					Detail: fmt.Sprintf("its container has %s %s, of which %s are allocated to it", h.Amount, h.Slot,
						resource.Format(h.Slot, rows[holding{id, h.DeviceId, h.Slot}])),
					repair: st.allocateAgain(k, h.DeviceId, h.Slot),
				})
			}
		}
	}
}

// checkDevices finds over-allocated devices, allocations of slots that exclude each other, and
// devices that no longer exist.
func (st *state) checkDevices() {
	used := map[uuid.UUID]resource.Slots{}
	byID := map[uuid.UUID]*ent.Device{}
	for _, a := range st.rows {
		if used[a.DeviceID] == nil {
			used[a.DeviceID] = resource.Slots{}
		}
		used[a.DeviceID][a.Slot] += a.Amount
		byID[a.DeviceID] = a.Edges.Device
	}
	for _, id := range store.IDs(byID) {
		d, on := byID[id], st.agents[byID[id].AgentID]
		if on == nil {
			continue
		}
		if why := st.rules.Against(used[id], d.Capacity); why != "" {
			st.found = append(st.found, Drift{Kind: Exceeded, Agent: on.Name, Device: d.DeviceID, Detail: "is held: " + why})
		}
	}
	gone := map[sight]bool{} // a device with several slots is reported once
	for _, a := range st.rows {
		on := st.agents[a.AgentID]
		if on == nil || st.reports[on.ID] == nil || a.Edges.Device.Health != device.HealthLost {
			continue
		}
		d := Drift{Kind: Gone, Agent: on.Name, Device: a.Edges.Device.DeviceID, Kernel: &a.KernelID, Session: &a.SessionID,
			Detail: "is allocated, and its agent no longer has it"}
		if !gone[d.sight()] {
			gone[d.sight()] = true
			st.found = append(st.found, d)
		}
	}
}

var phases = map[agentpb.KernelState_Phase]string{
	agentpb.KernelState_CREATING: "starting", agentpb.KernelState_RUNNING: "running", agentpb.KernelState_STOPPING: "ending",
}

func phase(k *agentpb.KernelState) string {
	if p, ok := phases[k.Phase]; ok {
		return p
	}
	return "in an unknown state"
}

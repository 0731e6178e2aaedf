package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/slottype"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/store"
)

// read reads everything a decision needs. The number of statements does not grow
// with the cluster.
func (s *Scheduler) read(ctx context.Context) (*model, error) {
	m := newModel(time.Now().UTC())
	live, err := s.readLive(ctx, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read live sessions: %w", err)
	}
	m.putAll(live)
	agents := &plan.Snapshot{}
	if err := s.readAgents(ctx, agents); err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	s.subtractOrphans(agents.Agents)
	m.setAgents(agents.Agents)
	limits, err := s.policies.All(ctx, s.client)
	if err != nil {
		return nil, err
	}
	m.setLimits(limits)
	settings := &plan.Snapshot{Now: m.snap.Now, Agents: m.snap.Agents}
	if err := s.readSettings(ctx, settings); err != nil {
		return nil, err
	}
	m.setSettings(settings)
	m.sums()
	return m, nil
}

// readSettings reads everything but agents, sessions and limits. A leader reads it again
// after an event that concerns it, and at each repair.
func (s *Scheduler) readSettings(ctx context.Context, snap *plan.Snapshot) error {
	for _, part := range []struct {
		what string
		read func(context.Context, *plan.Snapshot) error
	}{
		{"resource groups", s.readGroups},
		{"slot types", s.readSlotTypes},
		{"shares", s.readShares},
		{"recent demand", s.readDemandOf},
		{"networks", s.readNetworks},
	} {
		if err := part.read(ctx, snap); err != nil {
			return fmt.Errorf("read %s: %w", part.what, err)
		}
	}
	return nil
}

func (s *Scheduler) readGroups(ctx context.Context, snap *plan.Snapshot) error {
	groups, err := s.client.ResourceGroup.Query().Where(resourcegroup.Active(true)).Order(resourcegroup.ByID()).All(ctx)
	for _, g := range groups {
		snap.Groups = append(snap.Groups, plan.Group{
			ID: g.ID, Name: g.Name, HoldAfter: holdAfter(g),
			Strategy: plan.Strategy(g.Strategy), Order: plan.Order(g.Order), Split: plan.Split(g.Split),
			Topology: plan.Topology(g.Topology), Sharing: sharing(g), Preemption: preemption(g),
		})
	}
	return err
}

// readAgents adds the agents among ids, or all. Their usage is computed later from the
// allocations of sessions.
func (s *Scheduler) readAgents(ctx context.Context, snap *plan.Snapshot, ids ...uuid.UUID) error {
	q := s.client.Agent.Query().Where(agent.StatusNEQ(agent.StatusTerminated))
	if len(ids) > 0 {
		q.Where(func(s *sql.Selector) { s.Where(store.In(s.C(agent.FieldID), ids)) })
	}
	all, err := q.WithDevices(func(q *ent.DeviceQuery) { q.Order(device.ByID()) }).Order(agent.ByName()).All(ctx)
	if err != nil {
		return err
	}
	for _, a := range all {
		pa := plan.Agent{
			ID: a.ID, Name: a.Name, Group: a.ResourceGroupID, Architecture: a.Architecture, Volumes: a.Volumes,
			Counts: a.AllowedCounts, Counters: a.Counters, Links: a.Links,
		}
		pa.Closed, pa.Because = closed(a)
		pa.Schedulable = pa.Closed == ""
		if a.Overlay.Endpoint == "" {
			pa.Alone = cmp.Or(a.Overlay.Off, "it has not reported yet")
		}
		if s.images != nil {
			pa.Images = s.images.Images(a.Name)
			pa.Layers = s.images
		}
		for _, d := range a.Edges.Devices {
			pa.Devices = append(pa.Devices, plan.Device{
				ID: d.ID, Allocatable: d.Allocatable, Healthy: usable(d), Capacity: d.Capacity,
				Name: d.DeviceID, Parent: d.Parent, Consumes: d.Consumes, Groups: d.Groups, PCIeRoot: d.PcieRoot, NUMANode: d.NumaNode,
			})
		}
		snap.Agents = append(snap.Agents, pa)
	}
	return nil
}

// closed returns why an agent accepts no sessions, or "".
func closed(a *ent.Agent) (how plan.Closed, because string) {
	switch {
	case a.Status != agent.StatusAlive:
		return plan.ClosedLost, ""
	case !a.Schedulable && a.DrainAction != nil:
		return plan.ClosedDraining, a.CordonReason
	case !a.Schedulable:
		return plan.ClosedCordoned, a.CordonReason
	}
	if why := report.Holding(a.Conditions); why != "" {
		return plan.ClosedUnfit, a.Name + ": " + why
	}
	return "", ""
}

func (s *Scheduler) readSlotTypes(ctx context.Context, snap *plan.Snapshot) error {
	types, err := s.client.SlotType.Query().Order(slottype.ByName()).All(ctx)
	for _, t := range types {
		quantum, _ := resource.Parse(t.Name, t.Quantum) // 0 if the plugin sets none
		snap.SlotTypes = append(snap.SlotTypes, plan.SlotType{Name: t.Name, Kind: t.Kind, ExclusiveWith: t.ExclusiveWith, Quantum: quantum, Unified: t.Unified})
	}
	return err
}

// readDemandOf reads the demand for groups whose strategy uses it.
func (s *Scheduler) readDemandOf(ctx context.Context, snap *plan.Snapshot) (err error) {
	if slices.ContainsFunc(snap.Groups, func(g plan.Group) bool { return g.Strategy == plan.StrategyPack }) {
		snap.Demand, err = s.demand.get(ctx, snap.Now, func() ([]plan.Demand, error) { return s.readDemand(ctx) })
	}
	return err
}

// readNetworks reads the size of the largest free network, in kernels.
func (s *Scheduler) readNetworks(ctx context.Context, snap *plan.Snapshot) error {
	used, err := s.networks.Read(ctx, s.client.SessionNetwork)
	if err != nil {
		return err
	}
	most := used.Largest()
	snap.Networked = &most
	return nil
}

// planLimit converts a limit to the planner's form.
func planLimit(l *policy.Limit, used policy.Used) plan.Limit {
	return plan.Limit{
		Scope: string(l.Scope), ID: l.ScopeID, Owner: l.Person, Group: l.Group, Within: l.Within,
		Policy: l.Policy, Holder: l.Holder, GroupName: l.GroupName, ProjectName: l.WithinName,
		Total: l.TotalSlots, UnlistedZero: l.UnlistedZero, MaxSessions: l.MaxSessions,
		Used: used.Slots, Sessions: used.Sessions,
	}
}

// preemption converts a group's settings to the planner's form; nil if preemption is off.
func preemption(g *ent.ResourceGroup) *plan.Preemption {
	if g.Preemption == resourcegroup.PreemptionOff {
		return nil
	}
	return &plan.Preemption{Scope: string(g.PreemptionScope), After: time.Duration(g.PreemptionAfter) * time.Second}
}

// holdAfter converts a group's setting to the planner's form, in which 0 is the default.
func holdAfter(g *ent.ResourceGroup) time.Duration {
	if g.HoldAfter == 0 {
		return time.Nanosecond
	}
	return time.Duration(g.HoldAfter) * time.Second
}

// usable reports whether a device can be allocated to new sessions.
func usable(d *ent.Device) bool {
	return d.Health == device.HealthHealthy || d.Health == device.HealthDegraded
}

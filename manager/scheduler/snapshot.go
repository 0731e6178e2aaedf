package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiondependency"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/stats"
)

// snapshot reads everything a decision needs. The number of statements
// does not grow with the cluster.
func (s *Scheduler) snapshot(ctx context.Context) (*plan.Snapshot, error) {
	snap := &plan.Snapshot{Now: time.Now().UTC()}
	groups, err := s.client.ResourceGroup.Query().Where(resourcegroup.Active(true)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read resource groups: %w", err)
	}
	for _, g := range groups {
		snap.Groups = append(snap.Groups, plan.Group{
			ID: g.ID, Name: g.Name, HoldAfter: holdAfter(g),
			Strategy: plan.Strategy(g.Strategy), Order: plan.Order(g.Order), Split: plan.Split(g.Split), Sharing: sharing(g),
		})
	}
	if err := s.readAgents(ctx, snap); err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	if err := s.readSlotTypes(ctx, snap); err != nil {
		return nil, fmt.Errorf("read slot types: %w", err)
	}
	if err := s.readPending(ctx, snap); err != nil {
		return nil, fmt.Errorf("read pending sessions: %w", err)
	}
	if err := s.readShares(ctx, snap); err != nil {
		return nil, fmt.Errorf("read shares: %w", err)
	}
	if placed(snap, plan.StrategyPack) {
		if snap.Demand, err = s.asked.get(snap.Now, func() ([]plan.Demand, error) { return s.readDemand(ctx) }); err != nil {
			return nil, fmt.Errorf("read recent demand: %w", err)
		}
	}
	if placed(snap, plan.StrategyRoundRobin) {
		if err := s.readTurns(ctx, snap); err != nil {
			return nil, fmt.Errorf("read when agents were last used: %w", err)
		}
	}
	if snap.Limits, err = s.readLimits(ctx, s.client); err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	return snap, nil
}

// placed tells whether a group places its sessions by the strategy, and so needs
// what that goes by.
func placed(snap *plan.Snapshot, by plan.Strategy) bool {
	return slices.ContainsFunc(snap.Groups, func(g plan.Group) bool { return g.Strategy == by })
}

func (s *Scheduler) readAgents(ctx context.Context, snap *plan.Snapshot) error {
	all, err := s.client.Agent.Query().Where(agent.StatusNEQ(agent.StatusTerminated)).WithDevices().Order(agent.ByName()).All(ctx)
	if err != nil {
		return err
	}
	var devices []uuid.UUID
	for _, a := range all {
		for _, d := range a.Edges.Devices {
			devices = append(devices, d.ID)
		}
	}
	used, err := stats.Occupied(ctx, s.client, allocation.FieldDeviceID, devices)
	if err != nil {
		return err
	}
	for _, a := range all {
		pa := plan.Agent{
			ID: a.ID, Name: a.Name, Group: a.ResourceGroupID, Architecture: a.Architecture, Volumes: a.Volumes,
			Schedulable: a.Schedulable && a.Status == agent.StatusAlive, Counters: a.Counters, Links: a.Links,
		}
		for _, d := range a.Edges.Devices {
			pa.Devices = append(pa.Devices, plan.Device{
				ID: d.ID, Allocatable: d.Allocatable, Healthy: usable(d), Capacity: d.Capacity, Used: used[d.ID],
				Name: d.DeviceID, Parent: d.Parent, Consumes: d.Consumes, Groups: d.Groups, PCIeRoot: d.PcieRoot, NUMANode: d.NumaNode,
			})
		}
		snap.Agents = append(snap.Agents, pa)
	}
	return nil
}

func (s *Scheduler) readSlotTypes(ctx context.Context, snap *plan.Snapshot) error {
	types, err := s.client.SlotType.Query().All(ctx)
	for _, t := range types {
		quantum, _ := resource.Parse(t.Name, t.Quantum) // 0, for the smallest, where it says none
		snap.SlotTypes = append(snap.SlotTypes, plan.SlotType{Name: t.Name, Kind: t.Kind, ExclusiveWith: t.ExclusiveWith, Quantum: quantum})
	}
	return err
}

func (s *Scheduler) readPending(ctx context.Context, snap *plan.Snapshot) error {
	waiting, err := s.client.Session.Query().Where(session.StatusEQ(lifecycle.Pending)).
		WithKernels().WithImage().WithAgents().
		WithDependsOn(func(q *ent.SessionDependencyQuery) { q.Where(sessiondependency.Satisfied(false)) }).
		WithMounts(func(q *ent.SessionMountQuery) {
			q.WithVfolder(func(q *ent.VfolderQuery) {
				q.WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() })
			})
		}).Order(session.ByPriority(sql.OrderDesc()), session.ByCreatedAt()).Limit(maxPending).All(ctx)
	if err != nil {
		return err
	}
	s.waiting = make(map[uuid.UUID]*ent.Session, len(waiting))
	s.requests = make(map[uuid.UUID]*plan.Request, len(waiting))
	for _, w := range waiting {
		s.waiting[w.ID] = w
		r := plan.Request{
			SessionID: w.ID, Owner: w.OwnerID, Project: w.ProjectID, Domain: w.DomainID, Group: w.ResourceGroupID,
			Priority: w.Priority, Created: w.CreatedAt, Architecture: w.Edges.Image.Architecture, Strict: w.StrictAgents,
			AvoidAgents: w.AvoidAgents,
		}
		if w.KeypairID != nil {
			r.Keypair = *w.KeypairID
		}
		if w.RetryAt != nil {
			r.RetryAt = *w.RetryAt
		}
		if w.StartsAt != nil {
			r.StartsAt = *w.StartsAt
		}
		for _, d := range w.Edges.DependsOn {
			r.After = append(r.After, d.Name)
		}
		for _, a := range w.Edges.Agents {
			r.Agents = append(r.Agents, a.ID)
		}
		for _, m := range w.Edges.Mounts {
			r.Volumes = append(r.Volumes, m.Edges.Vfolder.Edges.QuotaScope.Edges.Volume.Name)
		}
		for _, k := range w.Edges.Kernels {
			r.Kernels = append(r.Kernels, plan.KernelRequest{ID: k.ID, Slots: k.Slots})
		}
		snap.Pending = append(snap.Pending, r)
		s.requests[w.ID] = &r
	}
	return nil
}

// readLimits reads every limit and what is used of it, in q.
func (s *Scheduler) readLimits(ctx context.Context, q policy.Querier) ([]plan.Limit, error) {
	limits, err := s.policies.All(ctx, q)
	if err != nil {
		return nil, err
	}
	usage, err := s.policies.Usage(ctx, q, limits)
	if err != nil {
		return nil, err
	}
	out := make([]plan.Limit, 0, len(limits))
	for i := range limits {
		l := &limits[i]
		used, err := usage.Of(l)
		if err != nil {
			return nil, err
		}
		out = append(out, plan.Limit{
			Scope: string(l.Scope), ID: l.ScopeID, Owner: l.Person, Group: l.Group, Within: l.Within,
			Policy: l.Policy, Holder: l.Holder, GroupName: l.GroupName, ProjectName: l.WithinName,
			Total: l.TotalSlots, UnlistedZero: l.UnlistedZero, MaxSessions: l.MaxSessions,
			Used: used.Slots, Sessions: used.Sessions,
		})
	}
	return out, nil
}

// holdAfter is what the planner takes: there 0 is not at once, but the default.
func holdAfter(g *ent.ResourceGroup) time.Duration {
	if g.HoldAfter == 0 {
		return time.Nanosecond
	}
	return time.Duration(g.HoldAfter) * time.Second
}

// usable tells whether new work may land on a device.
func usable(d *ent.Device) bool {
	return d.Health == device.HealthHealthy || d.Health == device.HealthDegraded
}

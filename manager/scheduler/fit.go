package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/store"
)

// Choose returns the first of the groups in which an idle agent could serve the request.
// If no group has agents, it returns the first group, because agents can join. Otherwise
// a request that no agent could ever serve is refused, with the reason of the first group
// that has agents.
func (s *Scheduler) Choose(ctx context.Context, groups []uuid.UUID, n session.Need) (uuid.UUID, error) {
	ctx = viewer.SystemContext(ctx)
	r := plan.Request{
		Architecture: n.Architecture, Kernels: slices.Repeat([]plan.KernelRequest{{Slots: n.Slots}}, n.Kernels), Agents: n.Only, Strict: len(n.Only) > 0,
	}
	key := fmt.Sprint(groups, n)
	for _, reread := range []bool{false, true} {
		group, never, err := s.cache.choose(ctx, s, groups, &r, key, reread)
		switch {
		case err != nil:
			return uuid.Nil, err
		case group != uuid.Nil:
			return group, nil
		case reread && len(never) > 0:
			return uuid.Nil, problem.Invalid(never[0].Field, "%s", never[0].Reason).WithLimit(never[0].Limit).Because(session.ErrNeverFits)
		}
	}
	return groups[0], nil
}

// agentCacheAge is how long cached agents are used without a full read. Events update
// them in between. A request is refused only after a full read.
const agentCacheAge = 30 * time.Second

// agentCache is the agents of the cluster without their usage. Every manager has one, for
// the check whether a request could ever be served.
type agentCache struct {
	turn   *semaphore.Weighted // acquired while rows are read
	events *event.Gathering
	snap   *plan.Snapshot
	idle   *plan.Idle
	read   time.Time
	fits   map[string]uuid.UUID // groups that were found, by request
}

// choose returns the group for a request. It returns no group if every group with agents
// refuses the request, or if no group has agents.
func (r *agentCache) choose(ctx context.Context, s *Scheduler, groups []uuid.UUID, req *plan.Request, key string, reread bool) (uuid.UUID, []plan.Impossible, error) {
	at := time.Now()
	if err := r.turn.Acquire(ctx, 1); err != nil {
		return uuid.Nil, nil, err
	}
	defer r.turn.Release(1)
	if err := r.refresh(ctx, s, reread && r.read.Before(at)); err != nil {
		return uuid.Nil, nil, err
	}
	if group, ok := r.fits[key]; ok {
		return group, nil, nil
	}
	group, never := choose(r.snap, r.idle.CanEver, groups, *req)
	if len(never) > 0 || !peopled(r.snap, group) {
		return uuid.Nil, never, nil
	}
	r.fits[key] = group
	return group, nil, nil
}

// refresh reads the agents that have changed, or all of them.
func (r *agentCache) refresh(ctx context.Context, s *Scheduler, reread bool) error {
	if r.events == nil {
		r.events = s.bus.Gather(context.WithoutCancel(ctx), []event.Topic{event.Agent, event.Pending}, by, event.BySamples)
	}
	begun, changes := time.Now(), r.events.Take()
	var changed []uuid.UUID
	all := reread || changes.Lagged || r.snap == nil || begun.Sub(r.read) >= agentCacheAge
	if !all && len(changes.Changed) == 0 {
		return nil
	}
	if !all {
		changed = store.IDs(changes.Changed[event.Agent])
	}
	snap, before := &plan.Snapshot{}, r.snap
	r.snap = nil // until every read has succeeded
	if err := s.readRules(ctx, snap); err != nil {
		return fmt.Errorf("read resource groups: %w", err)
	}
	if err := s.readSlotTypes(ctx, snap); err != nil {
		return fmt.Errorf("read slot types: %w", err)
	}
	if !all {
		snap.Agents = slices.DeleteFunc(slices.Clone(before.Agents), func(a plan.Agent) bool { return slices.Contains(changed, a.ID) })
	}
	if all || len(changed) > 0 {
		if err := s.readAgents(ctx, snap, changed...); err != nil {
			return fmt.Errorf("read agents: %w", err)
		}
	}
	if all {
		r.read = begun
	}
	r.snap, r.idle, r.fits = snap, plan.NewIdle(snap), map[string]uuid.UUID{}
	return nil
}

// readRules reads the rules of resource groups that decide what an idle agent can serve.
func (s *Scheduler) readRules(ctx context.Context, snap *plan.Snapshot) error {
	groups, err := s.client.ResourceGroup.Query().Select(resourcegroup.FieldID, resourcegroup.FieldSplit, resourcegroup.FieldTopology).All(ctx)
	for _, g := range groups {
		snap.Groups = append(snap.Groups, plan.Group{ID: g.ID, Split: plan.Split(g.Split), Topology: plan.Topology(g.Topology)})
	}
	return err
}

// peopled reports whether a group has agents.
func peopled(snap *plan.Snapshot, group uuid.UUID) bool {
	return slices.ContainsFunc(snap.Agents, func(a plan.Agent) bool { return a.Group == group })
}

// choose finds the first group with agents that could ever serve a request.
func choose(snap *plan.Snapshot, ever func(*plan.Request) []plan.Impossible, groups []uuid.UUID, r plan.Request) (group uuid.UUID, refused []plan.Impossible) {
	for _, g := range groups {
		r.Group = g
		never := ever(&r)
		switch {
		case len(never) > 0 && refused == nil:
			refused = never
		case len(never) > 0:
		case peopled(snap, g):
			return g, nil
		case group == uuid.Nil:
			group = g
		}
	}
	return group, refused
}

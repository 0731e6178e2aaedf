package scheduler

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// Choose returns the first of the groups where some agent could serve the request
// if everything were free. Where none has agents it is the first, as some may join;
// else what no agent could ever serve is refused, as the first group with agents
// puts it. Only the agents in only count, if there are any.
func (s *Scheduler) Choose(ctx context.Context, groups, only []uuid.UUID, architecture string, slots resource.Slots) (uuid.UUID, error) {
	ctx = viewer.SystemContext(ctx)
	snap := &plan.Snapshot{}
	if err := s.readAgents(ctx, snap); err != nil {
		return uuid.Nil, fmt.Errorf("read agents: %w", err)
	}
	if err := s.readSlotTypes(ctx, snap); err != nil {
		return uuid.Nil, fmt.Errorf("read slot types: %w", err)
	}
	group, never := choose(snap, groups, plan.Request{
		Architecture: architecture, Kernels: []plan.KernelRequest{{Slots: slots}}, Agents: only, Strict: len(only) > 0,
	})
	if len(never) > 0 {
		return uuid.Nil, problem.Invalid(never[0].Field, "%s", never[0].Reason).WithLimit(never[0].Limit)
	}
	return group, nil
}

func choose(snap *plan.Snapshot, groups []uuid.UUID, r plan.Request) (group uuid.UUID, refused []plan.Impossible) {
	for _, g := range groups {
		r.Group = g
		never := plan.CanEver(snap, &r)
		switch {
		case len(never) > 0 && refused == nil:
			refused = never
		case len(never) > 0:
		case slices.ContainsFunc(snap.Agents, func(a plan.Agent) bool { return a.Group == g }):
			return g, nil
		case group == uuid.Nil:
			group = g
		}
	}
	return group, refused
}

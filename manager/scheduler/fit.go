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
// if everything were free. A group without agents refuses nothing, as some may
// join, but is taken only where no other would do. The error is about the first
// group that refuses.
func (s *Scheduler) Choose(ctx context.Context, groups []uuid.UUID, architecture string, slots resource.Slots) (uuid.UUID, error) {
	ctx = viewer.SystemContext(ctx)
	snap := &plan.Snapshot{}
	if err := s.readAgents(ctx, snap); err != nil {
		return uuid.Nil, fmt.Errorf("read agents: %w", err)
	}
	if err := s.readSlotTypes(ctx, snap); err != nil {
		return uuid.Nil, fmt.Errorf("read slot types: %w", err)
	}
	empty := uuid.Nil
	var refused error
	for _, group := range groups {
		never := plan.CanEver(snap, &plan.Request{
			Group: group, Architecture: architecture, Kernels: []plan.KernelRequest{{Slots: slots}},
		})
		switch {
		case len(never) > 0 && refused == nil:
			refused = problem.Invalid(never[0].Field, "%s", never[0].Reason).WithLimit(never[0].Limit)
		case len(never) > 0:
		case slices.ContainsFunc(snap.Agents, func(a plan.Agent) bool { return a.Group == group }):
			return group, nil
		case empty == uuid.Nil:
			empty = group
		}
	}
	if empty != uuid.Nil {
		return empty, nil
	}
	return uuid.Nil, refused
}

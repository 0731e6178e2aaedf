package scheduler

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// CanEver refuses a request that no agent of the group could serve even if
// everything were free. A group without agents refuses nothing: some may join.
func (s *Scheduler) CanEver(ctx context.Context, group uuid.UUID, architecture string, slots resource.Slots) error {
	ctx = viewer.SystemContext(ctx)
	snap := &plan.Snapshot{}
	if err := s.readAgents(ctx, snap); err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	if err := s.readSlotTypes(ctx, snap); err != nil {
		return fmt.Errorf("read slot types: %w", err)
	}
	never := plan.CanEver(snap, &plan.Request{
		Group: group, Architecture: architecture, Kernels: []plan.KernelRequest{{Slots: slots}},
	})
	if len(never) == 0 {
		return nil
	}
	first := never[0]
	return problem.Invalid(first.Field, "%s", first.Reason).WithLimit(first.Limit)
}

package scheduler

import (
	"context"

	"github.com/berthhq/berth/manager/scheduler/plan"
)

// Decide reads the cluster and plans, and commits nothing.
func (s *Scheduler) Decide(ctx context.Context) ([]plan.Decision, error) {
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return plan.Plan(snap), nil
}

// Commit is the commit of one batch.
func (s *Scheduler) Commit(ctx context.Context, epoch int64, batch []plan.Decision) error {
	return s.commit(ctx, epoch, batch)
}

// Explain stores why sessions wait.
func (s *Scheduler) Explain(ctx context.Context, epoch int64, batch []plan.Decision) error {
	return s.explain(ctx, epoch, batch)
}

package scheduler

import (
	"context"

	"github.com/berthhq/berth/manager/scheduler/plan"
)

// Term is what a leader does, step by step.
type Term struct{ t *term }

// Begin begins to lead.
func (s *Scheduler) Begin(ctx context.Context, epoch int64) *Term {
	return &Term{s.newTerm(ctx, epoch)}
}

// Decide reads what has changed and plans, and commits nothing.
func (t *Term) Decide(ctx context.Context) ([]plan.Decision, error) {
	if err := t.t.look(ctx); err != nil {
		return nil, err
	}
	change := t.t.model.take()
	change.Review = true
	return t.t.planner.Decide(t.t.model.snap, change), nil
}

// Commit is the commit of one batch, under an epoch.
func (t *Term) Commit(ctx context.Context, epoch int64, batch []plan.Decision) error {
	t.t.epoch = epoch
	return t.t.commit(ctx, batch)
}

// MakeRoom ends sessions for others, under an epoch.
func (t *Term) MakeRoom(ctx context.Context, epoch int64, decisions []plan.Decision) error {
	t.t.epoch = epoch
	return t.t.makeRoom(ctx, decisions)
}

// Explain stores why sessions wait, under an epoch.
func (t *Term) Explain(ctx context.Context, epoch int64, batch []plan.Decision) error {
	t.t.told.epoch = epoch
	t.t.told.offer(batch, t.t.model.live)
	for {
		waits, _ := t.t.told.next()
		if len(waits) == 0 {
			return nil
		}
		if err := t.t.told.explain(ctx, waits); err != nil {
			return err
		}
	}
}

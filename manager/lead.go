package manager

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/manager/agents"
	"github.com/berthhq/berth/manager/leader"
)

// lead runs the loops that only one manager may run, for one term.
func (m *Manager) lead(ctx context.Context, epoch int64) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, loop := range []func(){
		func() { m.agents.Lead(ctx, epoch, m.sessions) },
		func() { m.sessions.Lead(ctx, epoch) },
		func() { m.scheduler.Lead(ctx, epoch) },
		func() { m.occupancy.Lead(ctx, epoch) },
		func() { m.idle.Lead(ctx, epoch) },
		func() { m.folders.Lead(ctx) },
		func() { m.folders.Measure(ctx) },
		func() { m.tasks.Lead(ctx, epoch) },
		func() { m.audit.Lead(ctx) },
	} {
		g.Go(func() error { loop(); return nil })
	}
	g.Go(func() error {
		err := m.agents.Outreached(ctx)
		if errors.Is(err, agents.ErrOutreached) {
			err = fmt.Errorf("%w: %w", leader.ErrStepDown, err)
		}
		return err
	})
	return g.Wait()
}

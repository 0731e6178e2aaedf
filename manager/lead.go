package manager

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/manager/agents"
	"github.com/berthhq/berth/manager/leader"
)

// lead runs the loops that only the leader may run, until it loses the leadership.
func (m *Manager) lead(ctx context.Context, epoch int64) error {
	if err := m.recovery.Begin(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	together(ctx, g,
		func(ctx context.Context) { m.core.Agents.Lead(ctx, epoch, m.core.Sessions) },
		m.folders.Measure,
		m.recovery.Beat,
	)
	g.Go(func() error {
		return m.recovery.Follow(ctx, func(ctx context.Context, recovering bool) error {
			g, ctx := errgroup.WithContext(ctx)
			m.drive(ctx, g, epoch, recovering)
			return g.Wait()
		})
	})
	g.Go(func() error {
		err := m.core.Agents.Outreached(ctx)
		if errors.Is(err, agents.ErrOutreached) {
			err = fmt.Errorf("%w: %w", leader.ErrStepDown, err)
		}
		return err
	})
	return g.Wait()
}

// drive runs the loops that start, end and remove things; in recovery mode only those that end
// things on request.
func (m *Manager) drive(ctx context.Context, g *errgroup.Group, epoch int64, recovering bool) {
	together(ctx, g, func(ctx context.Context) { m.core.Occupancy.Lead(ctx, epoch) })
	if recovering {
		together(ctx, g, func(ctx context.Context) { m.core.Sessions.Recover(ctx, epoch) })
		return
	}
	together(ctx, g,
		func(ctx context.Context) { m.core.Sessions.Lead(ctx, epoch) },
		func(ctx context.Context) { m.core.Scheduler.Lead(ctx, epoch) },
		func(ctx context.Context) { m.idle.Lead(ctx, epoch) },
		m.folders.Lead,
		m.core.Images.Lead,
		m.prepulls.Lead,
		func(ctx context.Context) { m.tasks.Lead(ctx, epoch) },
		m.builds.Lead,
		m.deployments.Lead,
		m.chats.Lead,
		m.notices.Lead,
		m.series.Lead,
		m.remoteWrite.Lead,
		m.starts.Lead,
		m.sizes.Lead,
		func(ctx context.Context) { m.capacity.Lead(ctx, epoch) },
		func(ctx context.Context) { m.budgets.Lead(ctx, epoch, m.core.Sessions) },
		m.audit.Lead,
	)
}

func together(ctx context.Context, g *errgroup.Group, loops ...func(context.Context)) {
	for _, loop := range loops {
		g.Go(func() error { loop(ctx); return nil })
	}
}

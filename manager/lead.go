package manager

import (
	"context"

	"golang.org/x/sync/errgroup"
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
	return g.Wait()
}

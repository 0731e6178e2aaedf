package vfolder

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
)

// Lead measures quota scopes, applies the current limits of the policies to them, and marks
// volumes of unresponsive storage proxies, until ctx ends.
func (s *Service) Lead(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	news := s.Bus.Gather(ctx, []event.Topic{event.Policy})
	tick := clock.NewTicker("quota scopes", time.Minute)
	defer tick.Stop()
	look := clock.NewTicker("storage proxies", checkEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news.Wake():
			news.Take() // one pass covers many changes
		case <-look.C:
			if err := s.markUnresponsive(ctx); err != nil && ctx.Err() == nil {
				s.Logger.Warn("storage proxies", "error", err)
			}
			continue
		case <-s.back:
		case <-tick.C:
		}
		if err := s.syncScopes(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("settle quota scopes", "error", err)
		}
	}
}

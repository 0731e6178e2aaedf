package vfolder

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
)

// Lead measures quota scopes, brings their limits to the policies' of now, and looks for
// storage proxies that have gone, until ctx ends.
func (s *Service) Lead(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	news := s.bus.Gather(ctx, []event.Topic{event.Policy})
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	look := time.NewTicker(silentEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news.Wake():
			news.Take() // once for many changes
		case <-look.C:
			if err := s.markSilent(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("storage proxies", "error", err)
			}
			continue
		case <-s.back:
		case <-tick.C:
		}
		if err := s.settle(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("settle quota scopes", "error", err)
		}
	}
}

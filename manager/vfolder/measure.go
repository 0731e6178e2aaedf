package vfolder

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volume"
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
			s.Logger.Warn("apply quota scopes", "error", err)
		}
	}
}

const (
	measureEvery  = 15 * time.Second
	measureAtOnce = 50 // folders per round: a proxy can take 2 s for each
	staleAfter    = 10 * time.Minute
)

// Measure updates the usage of folders, the oldest values first and a few at a time, until ctx
// ends.
func (s *Service) Measure(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		if err := s.measure(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("measure folders", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Service) measure(ctx context.Context) error {
	list, err := s.Client.Vfolder.Query().Where(
		vfolder.StatusIn(vfolder.StatusReady, vfolder.StatusTrash), vfolder.PathNEQ(""),
		vfolder.Or(vfolder.MeasuredAtIsNil(), vfolder.MeasuredAtLT(clock.Now().Add(-staleAfter))),
		vfolder.HasQuotaScopeWith(quotascope.HasVolumeWith(volume.NameIn(s.served()...))),
	).Order(vfolder.ByMeasuredAt(sql.OrderNullsFirst())).Limit(measureAtOnce).
		WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).All(ctx)
	if err != nil {
		return fmt.Errorf("list folders: %w", err)
	}
	for _, f := range list {
		if err := s.measureOne(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// measureOne stores the usage of a folder. If its proxy does not answer, the folder keeps its
// values until its next turn.
func (s *Service) measureOne(ctx context.Context, f *ent.Vfolder) error {
	up := s.Client.Vfolder.UpdateOneID(f.ID).SetMeasuredAt(clock.Now())
	changed := false
	p, err := s.reach(f.Edges.QuotaScope.Edges.Volume.Name)
	if err == nil {
		got, err := p.rpc.GetFolder(ctx, folderRef(f))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.Logger.Debug("measure folder", "folder", f.ID, "error", err)
		default:
			changed = got.UsedBytes != nil && !same(got.UsedBytes, f.UsedBytes) || got.Files != nil && !same(got.Files, f.FileCount)
			if got.UsedBytes != nil {
				up.SetUsedBytes(*got.UsedBytes)
			}
			if got.Files != nil {
				up.SetFileCount(*got.Files)
			}
		}
	}
	if err := up.Exec(ctx); err != nil && !ent.IsNotFound(err) {
		return fmt.Errorf("store the size of folder %s: %w", f.ID, err)
	}
	if changed {
		s.changed(ctx, f.ID)
	}
	return nil
}

// served returns the volumes that connected proxies serve.
func (s *Service) served() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, p := range s.proxies {
		for name := range p.volumes {
			list = append(list, name)
		}
	}
	return list
}

package vfolder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/storage/storagepb"
)

// Lead removes the data of folders that were marked for deletion, and measures
// quota scopes, until ctx ends. A deletion that was cut short goes on.
func (s *Service) Lead(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	events := s.bus.Subscribe(ctx, event.Vfolder)
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		if err := s.deleteMarked(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("delete folders", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				return
			}
		case <-s.joined:
		case <-tick.C:
			if err := s.measure(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("measure quota scopes", "error", err)
			}
		}
	}
}

func (s *Service) deleteMarked(ctx context.Context) error {
	marked, err := s.client.Vfolder.Query().Where(vfolder.StatusEQ(vfolder.StatusDeleting)).
		WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).All(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, f := range marked {
		if err := s.deleteOne(ctx, f); err != nil && !unavailable(err) {
			all = errors.Join(all, fmt.Errorf("folder %s: %w", f.ID, err))
		}
	}
	return all
}

func (s *Service) deleteOne(ctx context.Context, f *ent.Vfolder) error {
	p, err := s.reach(f.Edges.QuotaScope.Edges.Volume.Name)
	if err != nil {
		return err
	}
	stream, err := p.rpc.DeleteFolder(ctx, folderRef(f))
	for err == nil {
		var progress *storagepb.Progress
		if progress, err = stream.Recv(); err == nil && progress.Finished {
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return errgrpc.ToNative(err)
	}
	if err := s.client.Vfolder.UpdateOne(f).SetStatus(vfolder.StatusDeleted).Exec(ctx); err != nil {
		return err
	}
	s.changed(ctx, f.ID)
	return nil
}

// measure notes what the proxies know of each scope's usage.
func (s *Service) measure(ctx context.Context) error {
	scopes, err := s.client.QuotaScope.Query().WithVolume().All(ctx)
	if err != nil {
		return err
	}
	for _, sc := range scopes {
		p, err := s.reach(sc.Edges.Volume.Name)
		if err != nil {
			continue
		}
		got, err := p.rpc.GetScope(ctx, &storagepb.ScopeRequest{Volume: sc.Edges.Volume.Name, Scope: sc.HolderID.String()})
		if err != nil {
			s.log.Debug("measure quota scope", "scope", sc.ID, "error", err)
			continue
		}
		u := s.client.QuotaScope.UpdateOne(sc).SetEnforcement(got.Enforcement)
		if got.UsedBytes != nil {
			u.SetUsedBytes(*got.UsedBytes).SetMeasuredAt(now())
		}
		if err := u.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

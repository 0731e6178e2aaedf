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

// Lead removes the data of folders that were marked for deletion, measures
// quota scopes and brings their limits to the policies' of now, until ctx ends.
// What was cut short goes on.
func (s *Service) Lead(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	events := s.bus.Subscribe(ctx, event.Vfolder, event.Policy)
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		if err := s.deleteMarked(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("delete folders", "error", err)
		}
		settle := true
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			settle = e.Topic != event.Vfolder
			for len(events) > 0 { // once for many changes
				settle = (<-events).Topic != event.Vfolder || settle
			}
		case <-s.joined:
		case <-tick.C:
		}
		if settle {
			if err := s.settle(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("settle quota scopes", "error", err)
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
	if err := remove(ctx, p, folderRef(f)); err != nil {
		return err
	}
	if err := s.client.Vfolder.UpdateOne(f).SetStatus(vfolder.StatusDeleted).Exec(ctx); err != nil {
		return err
	}
	s.changed(ctx, f.ID)
	return nil
}

// remove deletes the bytes of a folder.
func remove(ctx context.Context, p *proxy, f *storagepb.FolderRef) error {
	stream, err := p.rpc.DeleteFolder(ctx, f)
	for err == nil {
		var progress *storagepb.Progress
		if progress, err = stream.Recv(); err == nil && progress.Finished {
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return errgrpc.ToNative(err)
	}
	return nil
}

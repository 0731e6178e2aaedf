package vfolder

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/storage/storagepb"
)

// Source returns a folder whose files the viewer can read.
func (s *Service) Source(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	return s.copyable(ctx, id)
}

// Target returns a folder that the viewer can write files to.
func (s *Service) Target(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	return s.writable(ctx, id)
}

// User returns the current permissions of a user; a user who is not active has none.
func (s *Service) User(ctx context.Context, id uuid.UUID) (*viewer.Viewer, error) {
	who, err := s.Users.Rights(viewer.SystemContext(ctx), []uuid.UUID{id})
	if err != nil {
		return nil, fmt.Errorf("read rights: %w", err)
	}
	if who[id] == nil {
		return viewer.Anonymous(), nil
	}
	return who[id], nil
}

// At is a folder at its proxy, for tasks that move files from and to object storages.
type At struct {
	Ref     *storagepb.FolderRef
	Volume  string
	Objects storagepb.ObjectsClient
}

// At finds the proxy for a task of a folder, after it has checked that the user still has
// access. If no proxy is connected, the error makes the task wait.
func (s *Service) At(ctx context.Context, use Use) (*At, error) {
	if err := s.kept(ctx, use, "the folder"); err != nil {
		return nil, err
	}
	f, err := s.whole(ctx, use.Folder)
	if err != nil {
		return nil, err
	}
	at := &At{Ref: folderRef(f), Volume: f.Edges.QuotaScope.Edges.Volume.Name}
	p, err := s.reach(at.Volume)
	if err != nil {
		return nil, later(at.Volume, err)
	}
	at.Objects = p.objects
	return at, nil
}

// Later converts an error of the proxy to one that makes a task wait, if waiting helps.
func (a *At) Later(err error) error { return later(a.Volume, err) }

// Changed notifies subscribers that files of the folder have changed.
func (s *Service) Changed(ctx context.Context, id uuid.UUID) { s.changed(ctx, id) }

package vfolder

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/storage/storagepb"
)

// Source returns a folder whose files the viewer may take out.
func (s *Service) Source(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	return s.copyable(ctx, id)
}

// Target returns a folder that the viewer may put files into.
func (s *Service) Target(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	return s.fillable(ctx, id)
}

// User returns the rights that a user has now; a user who is not active has none.
func (s *Service) User(ctx context.Context, id uuid.UUID) (*viewer.Viewer, error) {
	who, err := s.Rights(viewer.SystemContext(ctx), []uuid.UUID{id})
	if err != nil {
		return nil, fmt.Errorf("read rights: %w", err)
	}
	if who[id] == nil {
		return viewer.Anonymous(), nil
	}
	return who[id], nil
}

// At is where the files of a folder can be moved to and from object storages.
type At struct {
	Ref     *storagepb.FolderRef
	Volume  string
	Objects storagepb.ObjectsClient
}

// At finds the proxy for what a task does with a folder, whose user may have lost the
// right to it meanwhile. Without a proxy the error makes the task wait.
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

// Later makes of an error of the proxy what a task does about it.
func (a *At) Later(err error) error { return later(a.Volume, err) }

// Changed tells who watches that the files of a folder are others.
func (s *Service) Changed(ctx context.Context, id uuid.UUID) { s.changed(ctx, id) }

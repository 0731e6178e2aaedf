package vfolder

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

const deleteKind = "vfolder.delete"

// deletion is the input of a task that deletes a folder permanently.
type deletion struct {
	Folder uuid.UUID
	After  uuid.UUID // a task that must have stopped before
}

// discard requests the permanent deletion of a folder, in the caller's transaction. It returns
// not found if the deletion was already requested.
func (s *Service) discard(ctx context.Context, tx *ent.Tx, f *ent.Vfolder, after uuid.UUID) (*ent.Task, error) {
	up := tx.Vfolder.UpdateOneID(f.ID).Where(vfolder.StatusNotIn(vfolder.StatusDeleting, vfolder.StatusDeleted)).SetStatus(vfolder.StatusDeleting)
	if f.DeletedAt == nil {
		up.SetDeletedAt(clock.Now())
	}
	if err := up.Exec(viewer.SystemContext(ctx)); err != nil {
		return nil, fmt.Errorf("mark folder for deletion: %w", err)
	}
	return s.Tasks.Enqueue(ctx, tx, tasks.Wanted{
		Kind: deleteKind, Title: "Delete folder " + f.Name, Input: deletion{Folder: f.ID, After: after}, Subject: f.ID, Domain: f.DomainID,
	})
}

func (s *Service) discardOne(ctx context.Context, f *ent.Vfolder) (t *ent.Task, err error) {
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		t, err = s.discard(ctx, tx, f, uuid.Nil)
		return err
	})
	return t, err
}

// Discard requests the permanent deletion of a folder in any state. A clone into it is
// cancelled.
func (s *Service) Discard(ctx context.Context, folder uuid.UUID) error {
	ctx = viewer.SystemContext(ctx)
	f, err := s.Client.Vfolder.Get(ctx, folder)
	if err != nil {
		return fmt.Errorf("read folder: %w", err)
	}
	clone, err := s.Client.Task.Query().Where(task.Kind(cloneKind), task.SubjectID(folder), task.EndedAtIsNil()).First(ctx)
	if err == nil {
		_, err = s.Tasks.CancelTask(ctx, tasks.CancelTaskInput{ID: clone.ID})
		return err
	}
	if !ent.IsNotFound(err) {
		return fmt.Errorf("look for a clone: %w", err)
	}
	err = s.locked(ctx, f, f.Status, func(ctx context.Context, tx *ent.Tx) error {
		if err := unmounted(ctx, tx, f); err != nil {
			return err
		}
		t, err := s.discard(ctx, tx, f, uuid.Nil)
		if err == nil {
			defer s.Tasks.Wake(ctx, t.ID)
		}
		return err
	})
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.changed(ctx, f.ID)
	return nil
}

// SweepTrash deletes folders permanently that have been in the trash since before a time.
func (s *Service) SweepTrash(ctx context.Context, before time.Time) (n int, err error) {
	ctx = viewer.SystemContext(ctx)
	list, err := s.Client.Vfolder.Query().Where(vfolder.StatusEQ(vfolder.StatusTrash), vfolder.DeletedAtLT(before)).
		Order(vfolder.ByDeletedAt()).Limit(sweepAtOnce).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read trash: %w", err)
	}
	for _, f := range list {
		t, err := s.discardOne(ctx, f)
		if ent.IsNotFound(err) {
			continue
		}
		if err != nil {
			return n, err
		}
		s.Tasks.Wake(ctx, t.ID)
		s.changed(ctx, f.ID)
		n++
	}
	return n, nil
}

// sweepAtOnce limits the tasks of one sweep of the trash.
const sweepAtOnce = 1000

// remover runs the tasks that delete folders.
type remover struct{ *Service }

// Undo returns an error, because some files are already deleted.
func (remover) Undo(context.Context, *ent.Tx, *ent.Task) error {
	return problem.Precondition("a deletion cannot be cancelled")
}

func (r remover) Run(ctx context.Context, at *tasks.Progress, input []byte) error {
	var in deletion
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	if r.Tasks.Runs(in.After) {
		return tasks.Wait("the work on the folder to stop")
	}
	f, err := r.whole(ctx, in.Folder)
	if ent.IsNotFound(err) || err == nil && f.Status == vfolder.StatusDeleted {
		return nil
	}
	if err != nil {
		return err
	}
	vol := f.Edges.QuotaScope.Edges.Volume.Name
	p, err := r.reach(vol)
	if err != nil {
		return later(vol, err)
	}
	if err := removed(ctx, p, folderRef(f), at); err != nil {
		return later(vol, err)
	}
	return r.gone(ctx, f)
}

// whole reads a folder with its volume and quota scope.
func (s *Service) whole(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	return s.Client.Vfolder.Query().Where(vfolder.ID(id)).WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).Only(ctx)
}

// removed deletes the files of a folder.
func removed(ctx context.Context, p *proxy, f *storagepb.FolderRef, at *tasks.Progress) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := p.rpc.DeleteFolder(ctx, f)
	if err != nil {
		return errgrpc.ToNative(err)
	}
	return follow(ctx, stream, at, nil)
}

// gone records that the files of a folder are deleted. A folder that was transferred in the
// meantime must be deleted at its new place. The row of a folder that was never complete is
// deleted.
func (s *Service) gone(ctx context.Context, f *ent.Vfolder) error {
	defer s.changed(ctx, f.ID)
	if f.Path == "" {
		if _, err := s.Client.Vfolder.Delete().Where(vfolder.ID(f.ID)).Exec(ctx); err != nil {
			return fmt.Errorf("remove the row of an incomplete folder: %w", err)
		}
		return nil
	}
	n, err := s.Client.Vfolder.Update().Where(vfolder.ID(f.ID), vfolder.QuotaScopeID(f.QuotaScopeID)).
		SetStatus(vfolder.StatusDeleted).Save(ctx)
	if err != nil {
		return fmt.Errorf("note deletion: %w", err)
	}
	if n == 0 {
		return tasks.Wait("again: the folder was handed over in the meantime")
	}
	return nil
}

package vfolder

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentrevision"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// TrashVfolder moves a folder to the trash. Its name is free at once. A folder that a live
// session mounts cannot be moved.
func (s *Service) TrashVfolder(ctx context.Context, in TrashVfolderInput) (*VfolderPayload, error) {
	f, err := s.inState(ctx, in.ID, vfolder.StatusReady)
	if err != nil {
		return nil, err
	}
	if err := s.changeable(ctx, f, access.VolumeDelete, access.Delete); err != nil {
		return nil, err
	}
	err = s.locked(ctx, f, vfolder.StatusReady, func(ctx context.Context, tx *ent.Tx) error {
		if err := unmounted(ctx, tx, f); err != nil {
			return err
		}
		return tx.Vfolder.UpdateOneID(f.ID).SetStatus(vfolder.StatusTrash).SetDeletedAt(clock.Now()).Exec(ctx)
	})
	return s.after(ctx, f.ID, err)
}

// RestoreVfolder restores a folder from the trash, under another name if the old one is taken.
// Users who can move it to the trash can restore it.
func (s *Service) RestoreVfolder(ctx context.Context, in RestoreVfolderInput) (*VfolderPayload, error) {
	f, err := s.inState(ctx, in.ID, vfolder.StatusTrash)
	if err != nil {
		return nil, err
	}
	if in.Name != nil {
		if err := checkName(*in.Name); err != nil {
			return nil, err
		}
		f.Name = *in.Name
	}
	if err := s.changeable(ctx, f, access.VolumeDelete, access.Delete); err != nil {
		return nil, err
	}
	v := viewer.From(ctx)
	err = s.locked(ctx, f, vfolder.StatusTrash, func(ctx context.Context, tx *ent.Tx) error {
		if err := s.checkQuota(ctx, tx, v, f.DomainID, f.Edges.QuotaScope, nil); err != nil {
			return err
		}
		return named(f.Name, tx.Vfolder.UpdateOneID(f.ID).SetStatus(vfolder.StatusReady).ClearDeletedAt().SetName(f.Name).Exec(ctx))
	})
	return s.after(ctx, f.ID, err)
}

// DeleteVfolder deletes a folder in the trash permanently. Users of a share cannot.
func (s *Service) DeleteVfolder(ctx context.Context, in DeleteVfolderInput) (*VfolderTaskPayload, error) {
	f, err := s.inState(ctx, in.ID, vfolder.StatusTrash)
	if err != nil {
		return nil, err
	}
	if err := s.changeable(ctx, f, access.VolumeDelete, access.Delete, access.Update); err != nil {
		return nil, err
	}
	out := &VfolderTaskPayload{}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		out.Task, err = s.discard(ctx, tx, f, uuid.Nil)
		return err
	})
	return s.enqueued(ctx, f.ID, out, err)
}

// EmptyTrash permanently deletes all folders in the viewer's trash, or in the trash of a
// project.
func (s *Service) EmptyTrash(ctx context.Context, in EmptyTrashInput) (*EmptyTrashPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	whose := vfolder.OwnerID(v.User)
	if in.Project != nil {
		if _, err := s.Client.Project.Get(ctx, *in.Project); err != nil {
			return nil, permit.Missing(err, "project", "project")
		}
		whose = vfolder.ProjectID(*in.Project)
	}
	list, err := s.Client.Vfolder.Query().Where(whose, vfolder.StatusEQ(vfolder.StatusTrash)).Order(vfolder.ByDeletedAt()).
		WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read trash: %w", err)
	}
	for _, f := range list {
		if err := s.changeable(ctx, f, access.VolumeDelete, access.Delete, access.Update); err != nil {
			return nil, err
		}
	}
	out := &EmptyTrashPayload{}
	for _, f := range list {
		t, err := s.discardOne(ctx, f)
		if ent.IsNotFound(err) {
			continue // another request was faster
		}
		if err != nil {
			return nil, err
		}
		s.Tasks.Wake(ctx, t.ID)
		s.changed(ctx, f.ID)
		out.Count++
	}
	return out, nil
}

// inState returns a visible folder that has a status, with its volume.
func (s *Service) inState(ctx context.Context, id uuid.UUID, status vfolder.Status) (*ent.Vfolder, error) {
	f, err := s.Client.Vfolder.Query().Where(vfolder.ID(id)).
		WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).Only(ctx)
	if err == nil && f.Status == vfolder.StatusDeleted {
		return nil, problem.NotFound("folder").WithField("id")
	}
	if err != nil {
		return nil, permit.Missing(err, "folder", "id")
	}
	if f.Status != status {
		return nil, wrongState(f.Status, status)
	}
	return f, nil
}

func wrongState(is, want vfolder.Status) error {
	messages := map[vfolder.Status]string{
		vfolder.StatusCloning: "it is being cloned", vfolder.StatusReady: "it is not in the trash", vfolder.StatusTrash: "it is in the trash",
		vfolder.StatusDeleting: "it is being deleted", vfolder.StatusDeleted: "it was deleted",
	}
	return problem.Precondition("%s; this is for folders that are %s", messages[is], want).WithField("id")
}

// changeable returns an error if the viewer lacks one of the operations on a folder, or if its
// volume does not allow the change.
func (s *Service) changeable(ctx context.Context, f *ent.Vfolder, need access.VolumePermission, ops ...access.Operation) error {
	for _, op := range ops {
		if err := permit.To(ctx, op, f); err != nil {
			return err
		}
	}
	return s.Allow(ctx, f, need)
}

// locked runs do in a transaction that locks the row of a folder with a status. The creation
// of a session locks its folders too, so one of the two waits for the other.
func (s *Service) locked(ctx context.Context, f *ent.Vfolder, status vfolder.Status, do func(context.Context, *ent.Tx) error) error {
	ctx = viewer.SystemContext(ctx)
	return store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		now, err := tx.Vfolder.Query().Where(vfolder.ID(f.ID)).ForUpdate().Only(ctx)
		if err != nil {
			return fmt.Errorf("lock folder: %w", err)
		}
		if now.Status != status {
			return wrongState(now.Status, status)
		}
		return do(ctx, tx)
	})
}

// after notifies subscribers of a successful change and returns the folder.
func (s *Service) after(ctx context.Context, id uuid.UUID, err error) (*VfolderPayload, error) {
	if err != nil {
		return nil, err
	}
	s.changed(ctx, id)
	f, err := s.Client.Vfolder.Get(ctx, id)
	return &VfolderPayload{Vfolder: f}, err
}

// enqueued is after for a change with a task.
func (s *Service) enqueued(ctx context.Context, id uuid.UUID, out *VfolderTaskPayload, err error) (*VfolderTaskPayload, error) {
	if err != nil {
		return nil, err
	}
	s.Tasks.Wake(ctx, out.Task.ID)
	s.changed(ctx, id)
	out.Task = out.Task.Unwrap()
	out.Vfolder, err = s.Client.Vfolder.Get(ctx, id)
	return out, err
}

// named converts a violation of the unique index to an error that the name is taken.
func named(name string, err error) error {
	if ent.IsConstraintError(err) {
		return problem.Exists("name", "a folder is already named %q", name)
	}
	return err
}

// unmounted returns an error if live sessions mount the folder, if agents have not confirmed
// yet that they unmounted it, or if a deployment has its model there.
func unmounted(ctx context.Context, tx *ent.Tx, f *ent.Vfolder) error {
	mounts, err := tx.SessionMount.Query().
		Where(sessionmount.VfolderID(f.ID), sessionmount.HasSessionWith(session.TerminatedAtIsNil()),
			sessionmount.Or(sessionmount.RevokedAtIsNil(), sessionmount.Settled(false))).
		WithSession().All(ctx)
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	if len(mounts) > 0 {
		return problem.Precondition("folder %s is mounted by %d live sessions, %s among them",
			f.Name, len(mounts), mounts[0].Edges.Session.Name).WithField("id")
	}
	d, err := store.Serving(ctx, tx.DeploymentRevision, deploymentrevision.VfolderID(f.ID))
	if err != nil {
		return err
	}
	if d != nil {
		return problem.Precondition("folder %s has the model of deployment %s", f.Name, d.Name).WithField("id")
	}
	return nil
}

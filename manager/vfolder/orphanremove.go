package vfolder

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

const orphanKind = "volume.remove_orphan"

// RemoveOrphanInput names a folder on a volume without a row or, without a folder, a quota
// scope without a row.
type RemoveOrphanInput struct {
	Volume uuid.UUID
	Scope  uuid.UUID
	Folder *uuid.UUID
}

// RemoveOrphanPayload is the task that removes it.
type RemoveOrphanPayload struct {
	Volume *ent.Volume
	Task   *ent.Task
}

// RemoveOrphan deletes an orphan permanently, in a task.
func (s *Service) RemoveOrphan(ctx context.Context, in RemoveOrphanInput) (*RemoveOrphanPayload, error) {
	if _, err := permit.Check(ctx, access.Grant, access.Volume, access.Object{ID: in.Volume}); err != nil {
		return nil, err
	}
	vol, err := s.volume(ctx, &in.Volume)
	if err != nil {
		return nil, err
	}
	if err := s.orphaned(viewer.SystemContext(ctx), in); err != nil {
		return nil, err
	}
	what := "quota scope " + in.Scope.String()
	if in.Folder != nil {
		what = "folder " + in.Folder.String()
	}
	out := &RemoveOrphanPayload{Volume: vol}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		out.Task, err = s.Tasks.Enqueue(ctx, tx, tasks.Wanted{
			Kind: orphanKind, Title: fmt.Sprintf("Remove the orphaned %s from volume %s", what, vol.Name), Input: in, Subject: vol.ID,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Tasks.Wake(ctx, out.Task.ID)
	return out, nil
}

// orphaned returns an error if a row exists.
func (s *Service) orphaned(ctx context.Context, in RemoveOrphanInput) error {
	if in.Folder == nil {
		known, err := s.Client.QuotaScope.Query().Where(quotascope.VolumeID(in.Volume), quotascope.HolderID(in.Scope)).Exist(ctx)
		if err == nil && known {
			err = problem.Precondition("the quota scope is in use").WithField("scope")
		}
		return err
	}
	rows, moving, err := s.rows(ctx, []uuid.UUID{*in.Folder})
	if err != nil {
		return err
	}
	if row := rows[*in.Folder]; lies(row, in.Volume, in.Scope.String()) || row != nil && moving[row.ID] {
		return problem.Precondition("the path belongs to folder %s, which is not an orphan", row.Name).WithField("folder")
	}
	return nil
}

// orphanRemover runs the tasks that remove orphans.
type orphanRemover struct{ *Service }

// Run checks again that it is an orphan, because a row may have been created since.
func (r orphanRemover) Run(ctx context.Context, at *tasks.Progress, input []byte) error {
	var in RemoveOrphanInput
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	vol, err := r.Client.Volume.Get(ctx, in.Volume)
	if err != nil {
		return permit.Missing(err, "volume", "volume")
	}
	if err := r.orphaned(ctx, in); err != nil {
		return err
	}
	p, err := r.reach(vol.Name)
	if err != nil {
		return later(vol.Name, err)
	}
	if in.Folder == nil {
		_, err = p.rpc.DeleteScope(ctx, &storagepb.ScopeRequest{Volume: vol.Name, Scope: in.Scope.String()})
		return later(vol.Name, errgrpc.ToNative(err))
	}
	ref := &storagepb.FolderRef{Volume: vol.Name, Scope: in.Scope.String(), Folder: in.Folder.String()}
	return later(vol.Name, removed(ctx, p, ref, at))
}

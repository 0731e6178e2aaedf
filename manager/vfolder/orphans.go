package vfolder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

const (
	maxOrphans = 1000 // of each kind in a report
	atATime    = 1000 // compared with rows in one query
)

// VolumeOrphans are the differences between the contents of a volume and the rows.
type VolumeOrphans struct {
	Scopes   []OrphanScope
	Folders  []OrphanFolder
	Missing  []*ent.Vfolder
	Complete bool
}

// OrphanScope is a quota scope without a row.
type OrphanScope struct {
	Scope     string
	UsedBytes *int64
}

// OrphanFolder is a directory on a volume that is not a known folder.
type OrphanFolder struct{ State, Scope, Folder, Path string }

// search compares one volume with the rows.
type search struct {
	*Service
	vol   *ent.Volume
	rpc   storagepb.StorageClient
	begun time.Time
	seen  map[uuid.UUID]bool // folders at the place in their row
	out   *VolumeOrphans
}

// Orphans returns the quota scopes and folders on a volume that have no row, and the rows
// whose folder is missing.
func (s *Service) Orphans(ctx context.Context, vol *ent.Volume) (*VolumeOrphans, error) {
	if _, err := permit.Check(ctx, access.Grant, access.Volume, access.Object{ID: vol.ID}); err != nil {
		return nil, err
	}
	p, err := s.reach(vol.Name)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(viewer.SystemContext(ctx))
	defer stop()
	look := &search{s, vol, p.rpc, clock.Now(), map[uuid.UUID]bool{}, &VolumeOrphans{Complete: true}}
	for _, part := range []func(context.Context) error{look.scopes, look.folders, look.missing} {
		if err := part(ctx); err != nil {
			return nil, errgrpc.ToNative(err)
		}
	}
	return look.out, nil
}

// batches passes the messages of a stream to f in batches.
func batches[T any](recv func() (*T, error), f func([]*T) error) error {
	var list []*T
	for {
		one, err := recv()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		ended := err != nil
		if !ended {
			list = append(list, one)
		}
		if ended || len(list) == atATime {
			if err := f(list); err != nil {
				return err
			}
			list = list[:0]
		}
		if ended {
			return nil
		}
	}
}

func (l *search) scopes(ctx context.Context) error {
	stream, err := l.rpc.ListScopes(ctx, &storagepb.ListScopesRequest{Volume: l.vol.Name})
	if err != nil {
		return err
	}
	return batches(stream.Recv, func(list []*storagepb.Scope) error {
		var ids []uuid.UUID
		for _, one := range list {
			if id, err := uuid.Parse(one.Scope); err == nil {
				ids = append(ids, id)
			}
		}
		rows, err := l.Client.QuotaScope.Query().Where(quotascope.VolumeID(l.vol.ID), quotascope.HolderIDIn(ids...)).All(ctx)
		if err != nil {
			return fmt.Errorf("read quota scopes: %w", err)
		}
		known := map[string]bool{}
		for _, row := range rows {
			known[row.HolderID.String()] = true
		}
		for _, one := range list {
			if !known[one.Scope] && l.more(len(l.out.Scopes)) {
				l.out.Scopes = append(l.out.Scopes, OrphanScope{Scope: one.Scope, UsedBytes: one.UsedBytes})
			}
		}
		return nil
	})
}

// more reports whether the report has space for one more of a kind.
func (l *search) more(n int) bool {
	if n >= maxOrphans {
		l.out.Complete = false
		return false
	}
	return true
}

func (l *search) folders(ctx context.Context) error {
	stream, err := l.rpc.ListFolders(ctx, &storagepb.ListFoldersRequest{Volume: l.vol.Name})
	if err != nil {
		return err
	}
	return batches(stream.Recv, func(list []*storagepb.FolderEntry) error {
		var ids []uuid.UUID
		for _, one := range list {
			if id, err := uuid.Parse(one.Folder); err == nil {
				ids = append(ids, id)
			}
		}
		rows, moving, err := l.rows(ctx, ids)
		if err != nil {
			return err
		}
		for _, one := range list {
			id, err := uuid.Parse(one.Folder)
			if row := rows[id]; err == nil && (row != nil && moving[id] || lies(row, l.vol.ID, one.Scope)) {
				l.seen[id] = true
				continue
			}
			if l.more(len(l.out.Folders)) {
				l.out.Folders = append(l.out.Folders, OrphanFolder{State: states[one.State], Scope: one.Scope, Folder: one.Folder, Path: one.Path})
			}
		}
		return nil
	})
}

var states = map[storagepb.FolderEntry_State]string{
	storagepb.FolderEntry_PRESENT: "present", storagepb.FolderEntry_ARRIVING: "arriving",
	storagepb.FolderEntry_DELETING: "deleting", storagepb.FolderEntry_UNKNOWN: "unknown",
}

// lies reports whether a folder has a row with this place.
func lies(row *ent.Vfolder, vol uuid.UUID, scope string) bool {
	return row != nil && row.Edges.QuotaScope.VolumeID == vol && row.Edges.QuotaScope.HolderID.String() == scope
}

// rows returns the rows of folders that are not deleted, and the folders that a running task
// may have in two places.
func (s *Service) rows(ctx context.Context, ids []uuid.UUID) (rows map[uuid.UUID]*ent.Vfolder, moving map[uuid.UUID]bool, err error) {
	all, err := s.Client.Vfolder.Query().Where(vfolder.IDIn(ids...), vfolder.StatusNEQ(vfolder.StatusDeleted)).WithQuotaScope().All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read folders: %w", err)
	}
	busy, err := s.Client.Task.Query().Where(task.SubjectIDIn(ids...), task.EndedAtIsNil()).All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read tasks: %w", err)
	}
	rows, moving = map[uuid.UUID]*ent.Vfolder{}, map[uuid.UUID]bool{}
	for _, f := range all {
		rows[f.ID] = f
	}
	for _, t := range busy {
		moving[*t.SubjectID] = true
	}
	return rows, moving, nil
}

// missing finds folders of rows from before the search that are not on the volume. It requests
// each folder by itself, because the folder may have moved during the search.
func (l *search) missing(ctx context.Context) error {
	var after uuid.UUID
	for {
		page, err := l.Client.Vfolder.Query().Where(vfolder.IDGT(after), vfolder.PathNEQ(""), vfolder.CreatedAtLT(l.begun),
			vfolder.StatusIn(vfolder.StatusReady, vfolder.StatusTrash), vfolder.HasQuotaScopeWith(quotascope.VolumeID(l.vol.ID))).
			Order(vfolder.ByID()).Limit(atATime).IDs(ctx)
		if err != nil {
			return fmt.Errorf("list folders: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		after = page[len(page)-1]
		for _, id := range page {
			if l.seen[id] || !l.more(len(l.out.Missing)) {
				continue
			}
			f, err := l.whole(ctx, id)
			if ent.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			if _, err := l.rpc.GetFolder(ctx, folderRef(f)); errdefs.IsNotFound(errgrpc.ToNative(err)) {
				l.out.Missing = append(l.out.Missing, f)
			}
		}
	}
}

const orphanKind = "volume.remove_orphan"

// DeleteOrphanInput names a folder on a volume without a row or, without a folder, a quota
// scope without a row.
type DeleteOrphanInput struct {
	Volume uuid.UUID
	Scope  uuid.UUID
	Folder *uuid.UUID
}

// DeleteOrphanPayload is the task that removes it.
type DeleteOrphanPayload struct {
	Volume *ent.Volume
	Task   *ent.Task
}

// DeleteOrphan deletes an orphan permanently, in a task.
func (s *Service) DeleteOrphan(ctx context.Context, in DeleteOrphanInput) (*DeleteOrphanPayload, error) {
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
	out := &DeleteOrphanPayload{Volume: vol}
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
func (s *Service) orphaned(ctx context.Context, in DeleteOrphanInput) error {
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
	var in DeleteOrphanInput
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

package graph

import (
	"context"
	"errors"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/task"
	entvfolder "github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/vfolder"
	"github.com/berthhq/berth/storage/storagepb"
)

func (r queryResolver) Vfolders(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.VfolderOrder, where *ent.VfolderWhereInput) (*ent.VfolderConnection, error) {
	q := r.Client.Vfolder.Query()
	if where == nil || where.Status == nil && where.StatusIn == nil {
		q.Where(entvfolder.StatusNEQ(entvfolder.StatusDeleted))
	}
	return q.Paginate(ctx, after, first, before, last, ent.WithVfolderOrder(orderBy), ent.WithVfolderFilter(where.Filter))
}

func (r queryResolver) QuotaScopes(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.QuotaScopeOrder, where *ent.QuotaScopeWhereInput, mine *bool) (*ent.QuotaScopeConnection, error) {
	q := r.Client.QuotaScope.Query()
	if mine != nil && *mine {
		v := viewer.From(ctx)
		q.Where(quotascope.Or(quotascope.HolderID(v.User), quotascope.HolderIDIn(v.Projects...)))
	}
	return q.Paginate(ctx, after, first, before, last, ent.WithQuotaScopeOrder(orderBy), ent.WithQuotaScopeFilter(where.Filter))
}

func (r queryResolver) Volumes(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.VolumeOrder, where *ent.VolumeWhereInput) (*ent.VolumeConnection, error) {
	return r.Client.Volume.Query().Paginate(ctx, after, first, before, last, ent.WithVolumeOrder(orderBy), ent.WithVolumeFilter(where.Filter))
}

func (r vfolderResolver) MountedBy(ctx context.Context, f *ent.Vfolder) ([]*ent.Session, error) {
	return loaders(ctx).mounted.Load(ctx, f.ID)
}

func (r vfolderResolver) Files(ctx context.Context, f *ent.Vfolder, path *string, first *int, after *string) (*vfolder.FileList, error) {
	open, err := loaders(ctx).open.Load(ctx, f.ID)
	if err != nil {
		return nil, err
	}
	return r.Folders.Files(ctx, open, deref(path), deref(first), deref(after))
}

func (r vfolderResolver) Search(ctx context.Context, f *ent.Vfolder, path *string, text string, first *int, after *string) (*vfolder.FileList, error) {
	open, err := loaders(ctx).open.Load(ctx, f.ID)
	if err != nil {
		return nil, err
	}
	return r.Folders.Search(ctx, open, deref(path), text, deref(first), deref(after))
}

func (r vfolderResolver) AutoMount(_ context.Context, f *ent.Vfolder) (bool, error) {
	return vfolder.AutoMounts(f.Name), nil
}

func (r vfolderResolver) Volume(ctx context.Context, f *ent.Vfolder) (*ent.Volume, error) {
	return loaders(ctx).volumeOf.Load(ctx, f.QuotaScopeID)
}

func (r *Resolver) loadVolumeOf(ctx context.Context, scopes []uuid.UUID) (map[uuid.UUID]*ent.Volume, error) {
	var failed error
	all, err := r.Client.QuotaScope.Query().Where(quotascope.IDIn(scopes...)).
		WithVolume(func(q *ent.VolumeQuery) { _, failed = q.CollectFields(ctx, "Volume", "Node") }).All(ctx)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	m := map[uuid.UUID]*ent.Volume{}
	for _, s := range all {
		m[s.ID] = s.Edges.Volume
	}
	return m, err
}

func (r vfolderResolver) ClonedFrom(ctx context.Context, f *ent.Vfolder) (*ent.Vfolder, error) {
	if f.ClonedFromID == nil {
		return nil, nil
	}
	return loaders(ctx).origins.Load(ctx, *f.ClonedFromID)
}

func (r *Resolver) loadOrigins(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Vfolder, error) {
	q, err := r.Client.Vfolder.Query().Where(entvfolder.IDIn(ids...)).CollectFields(ctx, "Vfolder", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	return byID(all, func(f *ent.Vfolder) uuid.UUID { return f.ID }), err
}

func (r vfolderResolver) Tasks(ctx context.Context, f *ent.Vfolder) ([]*ent.Task, error) {
	return loaders(ctx).folderTasks.Load(ctx, f.ID)
}

func (r *Resolver) loadFolderTasks(ctx context.Context, folders []uuid.UUID) (map[uuid.UUID][]*ent.Task, error) {
	all, err := r.Client.Task.Query().
		Where(task.SubjectIDIn(folders...), task.StatusIn(task.StatusWaiting, task.StatusRunning, task.StatusFailed)).
		Order(task.ByCreatedAt()).All(ctx)
	m := map[uuid.UUID][]*ent.Task{}
	for _, t := range all {
		m[*t.SubjectID] = append(m[*t.SubjectID], t)
	}
	return m, err
}

func (r fileResolver) ModifiedAt(_ context.Context, f *storagepb.FileInfo) (*time.Time, error) {
	t := time.UnixMilli(f.ModifiedUnixMs).UTC()
	return &t, nil
}

func (r mutationResolver) CreateVfolder(ctx context.Context, input vfolder.CreateVfolderInput) (*vfolder.VfolderPayload, error) {
	return r.Folders.CreateVfolder(ctx, input)
}

func (r mutationResolver) UpdateVfolder(ctx context.Context, input vfolder.UpdateVfolderInput) (*vfolder.VfolderPayload, error) {
	return r.Folders.UpdateVfolder(ctx, input)
}

func (r mutationResolver) TrashVfolder(ctx context.Context, input vfolder.TrashVfolderInput) (*vfolder.VfolderPayload, error) {
	return r.Folders.TrashVfolder(ctx, input)
}

func (r mutationResolver) RestoreVfolder(ctx context.Context, input vfolder.RestoreVfolderInput) (*vfolder.VfolderPayload, error) {
	return r.Folders.RestoreVfolder(ctx, input)
}

func (r mutationResolver) DeleteVfolder(ctx context.Context, input vfolder.DeleteVfolderInput) (*vfolder.VfolderTaskPayload, error) {
	return r.Folders.DeleteVfolder(ctx, input)
}

func (r mutationResolver) EmptyTrash(ctx context.Context, input vfolder.EmptyTrashInput) (*vfolder.EmptyTrashPayload, error) {
	return r.Folders.EmptyTrash(ctx, input)
}

func (r mutationResolver) CloneVfolder(ctx context.Context, input vfolder.CloneVfolderInput) (*vfolder.VfolderTaskPayload, error) {
	return r.Folders.CloneVfolder(ctx, input)
}

func (r mutationResolver) HandOverVfolder(ctx context.Context, input vfolder.HandOverVfolderInput) (*vfolder.VfolderTaskPayload, error) {
	return r.Folders.HandOverVfolder(ctx, input)
}

func (r mutationResolver) CreateUpload(ctx context.Context, input vfolder.CreateUploadInput) (*vfolder.CreateUploadPayload, error) {
	return r.Folders.CreateUpload(ctx, input)
}

func (r mutationResolver) CreateDownload(ctx context.Context, input vfolder.CreateDownloadInput) (*vfolder.CreateDownloadPayload, error) {
	return r.Folders.CreateDownload(ctx, input)
}

func (r mutationResolver) CreateDirectories(ctx context.Context, input vfolder.CreateDirectoriesInput) (*vfolder.FilesPayload, error) {
	return r.Folders.CreateDirectories(ctx, input)
}

func (r mutationResolver) MoveFiles(ctx context.Context, input vfolder.MoveFilesInput) (*vfolder.FilesPayload, error) {
	return r.Folders.MoveFiles(ctx, input)
}

func (r mutationResolver) CopyFiles(ctx context.Context, input vfolder.CopyFilesInput) (*vfolder.VfolderTaskPayload, error) {
	return r.Folders.CopyFiles(ctx, input)
}

func (r mutationResolver) DeleteFiles(ctx context.Context, input vfolder.DeleteFilesInput) (*vfolder.FilesPayload, error) {
	return r.Folders.DeleteFiles(ctx, input)
}

// VfolderChanged sends each visible folder that changes.
func (r subscriptionResolver) VfolderChanged(ctx context.Context, id *uuid.UUID) (<-chan *ent.Vfolder, error) {
	find := func(ctx context.Context, where ...predicate.Vfolder) ([]*ent.Vfolder, error) {
		q, err := r.Client.Vfolder.Query().Where(where...).Order(entvfolder.ByCreatedAt(sql.OrderDesc())).Limit(maxFeed).
			CollectFields(ctx, "Vfolder", "Node")
		if err != nil {
			return nil, err
		}
		return q.All(ctx)
	}
	f := feed[*ent.Vfolder]{
		topic: event.Vfolder, id: id,
		first: func(context.Context) ([]*ent.Vfolder, error) { return nil, nil },
		read: func(ctx context.Context, ids []uuid.UUID) ([]*ent.Vfolder, error) {
			return find(ctx, entvfolder.IDIn(ids...))
		},
		missed: func(ctx context.Context) ([]*ent.Vfolder, error) {
			return find(ctx, entvfolder.Or(entvfolder.DeletedAtIsNil(), entvfolder.DeletedAtGT(now().Add(-missedFor))))
		},
	}
	if id != nil {
		f.missed = nil
		f.first = func(ctx context.Context) ([]*ent.Vfolder, error) {
			return named(ctx, find, "folder", entvfolder.ID(*id))
		}
	}
	return follow(ctx, r.Resolver, f)
}

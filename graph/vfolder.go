package graph

import (
	"context"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	entvfolder "github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/event"
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

func (r queryResolver) QuotaScopes(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.QuotaScopeOrder, where *ent.QuotaScopeWhereInput) (*ent.QuotaScopeConnection, error) {
	return r.Client.QuotaScope.Query().Paginate(ctx, after, first, before, last, ent.WithQuotaScopeOrder(orderBy), ent.WithQuotaScopeFilter(where.Filter))
}

func (r queryResolver) Volumes(ctx context.Context) ([]*ent.Volume, error) {
	q, err := r.Client.Volume.Query().Order(volume.ByName()).CollectFields(ctx, "Volume", "Node")
	if err != nil {
		return nil, err
	}
	return q.All(ctx)
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

func (r fileResolver) ModifiedAt(_ context.Context, f *storagepb.FileInfo) (*time.Time, error) {
	t := time.UnixMilli(f.ModifiedUnixMs).UTC()
	return &t, nil
}

func (r mutationResolver) CreateVfolder(ctx context.Context, input vfolder.CreateVfolderInput) (*vfolder.VfolderPayload, error) {
	return r.Folders.CreateVfolder(ctx, input)
}

func (r mutationResolver) RenameVfolder(ctx context.Context, input vfolder.RenameVfolderInput) (*vfolder.VfolderPayload, error) {
	return r.Folders.RenameVfolder(ctx, input)
}

func (r mutationResolver) DeleteVfolder(ctx context.Context, input vfolder.DeleteVfolderInput) (*vfolder.VfolderPayload, error) {
	return r.Folders.DeleteVfolder(ctx, input)
}

func (r mutationResolver) CreateUpload(ctx context.Context, input vfolder.CreateUploadInput) (*vfolder.CreateUploadPayload, error) {
	return r.Folders.CreateUpload(ctx, input)
}

func (r mutationResolver) CreateDownload(ctx context.Context, input vfolder.CreateDownloadInput) (*vfolder.CreateDownloadPayload, error) {
	return r.Folders.CreateDownload(ctx, input)
}

func (r mutationResolver) MakeDirectory(ctx context.Context, input vfolder.MakeDirectoryInput) (*vfolder.FilePayload, error) {
	return r.Folders.MakeDirectory(ctx, input)
}

func (r mutationResolver) MoveFile(ctx context.Context, input vfolder.MoveFileInput) (*vfolder.FilePayload, error) {
	return r.Folders.MoveFile(ctx, input)
}

func (r mutationResolver) DeleteFiles(ctx context.Context, input vfolder.DeleteFilesInput) (*vfolder.DeleteFilesPayload, error) {
	return r.Folders.DeleteFiles(ctx, input)
}

// VfolderChanged sends each folder in sight that changes.
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

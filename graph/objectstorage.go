package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/manager/objectstorage"
	"github.com/berthhq/berth/manager/vfolder"
)

func (r queryResolver) ObjectStorages(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ObjectStorageOrder, where *ent.ObjectStorageWhereInput) (*ent.ObjectStorageConnection, error) {
	return r.Client.ObjectStorage.Query().Paginate(ctx, after, first, before, last, ent.WithObjectStorageOrder(orderBy), ent.WithObjectStorageFilter(where.Filter))
}

func (r objectStorageResolver) Permissions(ctx context.Context, o *ent.ObjectStorage) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r objectStorageResolver) Objects(ctx context.Context, o *ent.ObjectStorage, path *string, first *int, after *string) (*objectstorage.ObjectList, error) {
	// The query may have selected fewer columns than the request to the storage needs.
	whole, err := r.Client.ObjectStorage.Get(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	return r.ObjectStores.Objects(ctx, whole, deref(path), deref(first), deref(after))
}

func (r taskResolver) ObjectTransfer(ctx context.Context, t *ent.Task) (*objectstorage.Figures, error) {
	return objectstorage.FiguresOf(t)
}

func (r objectTransferResolver) Failures(_ context.Context, f *objectstorage.Figures) ([]*vfolder.FileResult, error) {
	out := make([]*vfolder.FileResult, len(f.Failures))
	for i, one := range f.Failures {
		out[i] = &vfolder.FileResult{Path: one.Path, Error: &one.Error}
	}
	return out, nil
}

func (r mutationResolver) CreateObjectStorage(ctx context.Context, input objectstorage.CreateObjectStorageInput) (*objectstorage.ObjectStoragePayload, error) {
	return r.ObjectStores.CreateObjectStorage(ctx, input)
}

func (r mutationResolver) UpdateObjectStorage(ctx context.Context, input objectstorage.UpdateObjectStorageInput) (*objectstorage.ObjectStoragePayload, error) {
	return r.ObjectStores.UpdateObjectStorage(ctx, input)
}

func (r mutationResolver) DeleteObjectStorage(ctx context.Context, input objectstorage.DeleteObjectStorageInput) (*objectstorage.DeleteObjectStoragePayload, error) {
	return r.ObjectStores.DeleteObjectStorage(ctx, input)
}

func (r mutationResolver) TestObjectStorage(ctx context.Context, input objectstorage.TestObjectStorageInput) (*objectstorage.TestObjectStoragePayload, error) {
	return r.ObjectStores.TestObjectStorage(ctx, input)
}

func (r mutationResolver) ImportFolder(ctx context.Context, input objectstorage.ImportFolderInput) (*objectstorage.FolderTransferPayload, error) {
	return r.ObjectStores.ImportFolder(ctx, input)
}

func (r mutationResolver) ExportFolder(ctx context.Context, input objectstorage.ExportFolderInput) (*objectstorage.FolderTransferPayload, error) {
	return r.ObjectStores.ExportFolder(ctx, input)
}

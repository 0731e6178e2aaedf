package client

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
)

// ObjectStorages lists the object storages of the logged-in user and their domain; name ""
// means all.
func (c *Client) ObjectStorages(ctx context.Context, name string) ([]ObjectStorage, error) {
	return collect(0, func(first *int, after string) (*queryObjectStoragesObjectStoragesObjectStorageConnection, error) {
		out, err := queryObjectStorages(ctx, c, first, after, nameIs(name))
		return &out.ObjectStorages, err
	})
}

// CreateObjectStorage adds an object storage.
func (c *Client) CreateObjectStorage(ctx context.Context, in CreateObjectStorageInput) (*ObjectStorage, error) {
	out, err := createObjectStorage(ctx, c, in)
	return &out.Payload.ObjectStorage, err
}

// UpdateObjectStorage changes an object storage.
func (c *Client) UpdateObjectStorage(ctx context.Context, in UpdateObjectStorageInput) (*ObjectStorage, error) {
	out, err := updateObjectStorage(ctx, c, in)
	return &out.Payload.ObjectStorage, err
}

// DeleteObjectStorage removes an object storage; the objects in the bucket stay.
func (c *Client) DeleteObjectStorage(ctx context.Context, id string) error {
	_, err := deleteObjectStorage(ctx, c, DeleteObjectStorageInput{ID: id})
	return err
}

// TestObjectStorage reads a page of an object storage to test the connection.
func (c *Client) TestObjectStorage(ctx context.Context, id string) (*ObjectStorageTest, error) {
	out, err := testObjectStorage(ctx, c, TestObjectStorageInput{ID: id})
	return &out.Payload, err
}

// Objects lists up to limit objects at a path of an object storage; 0 means all.
func (c *Client) Objects(ctx context.Context, storage, path string, limit int) ([]StoredObject, error) {
	all := []StoredObject{}
	for after := ""; ; {
		first := 1000
		if limit > 0 {
			first = min(first, limit-len(all))
		}
		out, err := queryObjects(ctx, c, storage, path, &first, after)
		if err != nil {
			return nil, err
		}
		if out.Node == nil {
			return nil, fmt.Errorf("the object storage does not exist: %w", errdefs.ErrNotFound)
		}
		page := out.Node.Objects
		all = append(all, page.Objects...)
		if page.EndCursor == nil || limit > 0 && len(all) >= limit {
			return all, nil
		}
		after = *page.EndCursor
	}
}

// ImportFolder starts to import objects into a folder.
func (c *Client) ImportFolder(ctx context.Context, in ImportFolderInput) (*Task, error) {
	out, err := importFolder(ctx, c, in)
	return &out.Payload.Task, err
}

// ExportFolder starts to export files of a folder.
func (c *Client) ExportFolder(ctx context.Context, in ExportFolderInput) (*Task, error) {
	out, err := exportFolder(ctx, c, in)
	return &out.Payload.Task, err
}

// TransferTask reads the progress of an import or export.
func (c *Client) TransferTask(ctx context.Context, id string) (*TransferTask, error) {
	out, err := queryTransferTask(ctx, c, id)
	if err == nil && (out.Node == nil || out.Node.ObjectTransfer == nil) {
		err = fmt.Errorf("the task %s does not exist: %w", id, errdefs.ErrNotFound)
	}
	return out.Node, err
}

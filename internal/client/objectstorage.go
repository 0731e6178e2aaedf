package client

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
)

// ObjectStorage is a bucket that folders are imported from and exported to.
type ObjectStorage struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Endpoint    string    `json:"endpoint"`
	Region      string    `json:"region"`
	Bucket      string    `json:"bucket"`
	Prefix      string    `json:"prefix"`
	Addressing  string    `json:"addressing"`
	AccessKeyID string    `json:"accessKeyID"`
	ReadOnly    bool      `json:"readOnly"`
	Domain      *Ref      `json:"domain"`
	Owner       *UserRef  `json:"owner"`
	CreatedAt   time.Time `json:"createdAt"`
}

const storageFields = `fragment storageFields on ObjectStorage {
  id name endpoint region bucket prefix addressing accessKeyID readOnly domain { id name } owner { id email } createdAt
}`

var listStorages = define[struct {
	ObjectStorages connection[ObjectStorage] `json:"objectStorages"`
}](`query ObjectStorages($first: Int, $after: Cursor, $where: ObjectStorageWhereInput) {
  objectStorages(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...storageFields } } pageInfo { hasNextPage endCursor }
  }
}`, storageFields)

// ObjectStorages lists one's own and those of one's domain; name "" is all.
func (c *Client) ObjectStorages(ctx context.Context, name string) ([]ObjectStorage, error) {
	where := vars{}
	put(where, "name", name)
	return collect(0, vars{"where": where}, func(v vars) (connection[ObjectStorage], error) {
		out, err := listStorages.run(ctx, c, v)
		return out.ObjectStorages, err
	})
}

type storagePayload struct {
	ObjectStorage ObjectStorage `json:"objectStorage"`
}

// ObjectStorageInput is what is said of an object storage; nil is not said. A new one
// has Domain where it is for a domain's members; a change has ID.
type ObjectStorageInput struct {
	ID          string  `json:"id,omitempty"`
	Name        *string `json:"name,omitempty"`
	Endpoint    *string `json:"endpoint,omitempty"`
	Region      *string `json:"region,omitempty"`
	Bucket      *string `json:"bucket,omitempty"`
	Prefix      *string `json:"prefix,omitempty"`
	Addressing  *string `json:"addressing,omitempty"`
	AccessKeyID *string `json:"accessKeyID,omitempty"`
	Secret      *string `json:"secret,omitempty"`
	ReadOnly    *bool   `json:"readOnly,omitempty"`
	Domain      string  `json:"domain,omitempty"`
}

var createStorage = define[payload[storagePayload]](`mutation CreateObjectStorage($input: CreateObjectStorageInput!) {
  payload: createObjectStorage(input: $input) { objectStorage { ...storageFields } }
}`, storageFields)

// CreateObjectStorage adds an object storage.
func (c *Client) CreateObjectStorage(ctx context.Context, in ObjectStorageInput) (*ObjectStorage, error) {
	out, err := change(ctx, c, createStorage, in)
	return &out.ObjectStorage, err
}

var updateStorage = define[payload[storagePayload]](`mutation UpdateObjectStorage($input: UpdateObjectStorageInput!) {
  payload: updateObjectStorage(input: $input) { objectStorage { ...storageFields } }
}`, storageFields)

// UpdateObjectStorage changes an object storage.
func (c *Client) UpdateObjectStorage(ctx context.Context, in ObjectStorageInput) (*ObjectStorage, error) {
	out, err := change(ctx, c, updateStorage, in)
	return &out.ObjectStorage, err
}

var deleteStorage = define[payload[idOf]](`mutation DeleteObjectStorage($input: DeleteObjectStorageInput!) {
  payload: deleteObjectStorage(input: $input) { id }
}`)

// DeleteObjectStorage forgets an object storage; what is in the bucket stays.
func (c *Client) DeleteObjectStorage(ctx context.Context, id string) error {
	_, err := change(ctx, c, deleteStorage, idOf{id})
	return err
}

// ObjectStorageTest is what is wrong with an object storage, if anything.
type ObjectStorageTest struct {
	OK      bool    `json:"ok"`
	Message *string `json:"message"`
	Field   *string `json:"field"`
}

var testStorage = define[payload[ObjectStorageTest]](`mutation TestObjectStorage($input: TestObjectStorageInput!) {
  payload: testObjectStorage(input: $input) { ok message field }
}`)

// TestObjectStorage asks an object storage for a page.
func (c *Client) TestObjectStorage(ctx context.Context, id string) (*ObjectStorageTest, error) {
	out, err := change(ctx, c, testStorage, idOf{id})
	return &out, err
}

// StoredObject is an object, or what several begin with.
type StoredObject struct {
	Name       string     `json:"name"`
	Path       string     `json:"path"`
	Directory  bool       `json:"directory"`
	Size       int64      `json:"size"`
	ModifiedAt *time.Time `json:"modifiedAt"`
	Etag       string     `json:"etag"`
}

var listObjects = define[struct {
	Node *struct {
		Objects struct {
			Objects   []StoredObject `json:"objects"`
			EndCursor *string        `json:"endCursor"`
		} `json:"objects"`
	} `json:"node"`
}](`query Objects($id: ID!, $path: String, $first: Int, $after: String) {
  node(id: $id) { ... on ObjectStorage {
    objects(path: $path, first: $first, after: $after) { objects { name path directory size modifiedAt etag } endCursor }
  } }
}`)

// Objects lists what is at a path of an object storage, at most limit; 0 is all.
func (c *Client) Objects(ctx context.Context, storage, path string, limit int) ([]StoredObject, error) {
	all := []StoredObject{}
	var after *string
	for {
		first := 1000
		if limit > 0 {
			first = min(first, limit-len(all))
		}
		out, err := listObjects.run(ctx, c, vars{"id": storage, "path": path, "first": first, "after": after})
		if err != nil {
			return nil, err
		}
		if out.Node == nil {
			return nil, fmt.Errorf("the object storage is gone: %w", errdefs.ErrNotFound)
		}
		page := out.Node.Objects
		all = append(all, page.Objects...)
		if page.EndCursor == nil || limit > 0 && len(all) >= limit {
			return all, nil
		}
		after = page.EndCursor
	}
}

// Transfer asks for an import to, or an export from, a folder. Path is of what is
// moved, Directory where it goes.
type Transfer struct {
	Vfolder       string  `json:"vfolder"`
	ObjectStorage string  `json:"objectStorage"`
	Path          string  `json:"path"`
	Directory     string  `json:"directory"`
	Existing      *string `json:"existing,omitempty"`
}

var importFolder = define[payload[taskPayload]](`mutation ImportFolder($input: ImportFolderInput!) {
  payload: importFolder(input: $input) { task { ...taskFields } }
}`, taskFields)

// ImportFolder begins to bring objects into a folder.
func (c *Client) ImportFolder(ctx context.Context, in Transfer) (*Task, error) {
	out, err := change(ctx, c, importFolder, in)
	return &out.Task, err
}

var exportFolder = define[payload[taskPayload]](`mutation ExportFolder($input: ExportFolderInput!) {
  payload: exportFolder(input: $input) { task { ...taskFields } }
}`, taskFields)

// ExportFolder begins to send files of a folder.
func (c *Client) ExportFolder(ctx context.Context, in Transfer) (*Task, error) {
	out, err := change(ctx, c, exportFolder, in)
	return &out.Task, err
}

// TransferTask is an import or export, and how far it is.
type TransferTask struct {
	Task
	ObjectTransfer *ObjectTransfer `json:"objectTransfer"`
}

// ObjectTransfer is how far an import or export is.
type ObjectTransfer struct {
	Files      int64 `json:"files"`
	FilesTotal int64 `json:"filesTotal"`
	Bytes      int64 `json:"bytes"`
	BytesTotal int64 `json:"bytesTotal"`
	Left       int64 `json:"left"`
	Failed     int64 `json:"failed"`
	Failures   []struct {
		Path  string  `json:"path"`
		Error *string `json:"error"`
	} `json:"failures"`
}

var transferTask = define[struct {
	Node *TransferTask `json:"node"`
}](`query TransferTask($id: ID!) {
  node(id: $id) { ... on Task {
    ...taskFields
    objectTransfer { files filesTotal bytes bytesTotal left failed failures { path error } }
  } }
}`, taskFields)

// TransferTask reads how far an import or export is.
func (c *Client) TransferTask(ctx context.Context, id string) (*TransferTask, error) {
	out, err := transferTask.run(ctx, c, vars{"id": id})
	if err == nil && (out.Node == nil || out.Node.ObjectTransfer == nil) {
		err = fmt.Errorf("the task %s is gone: %w", id, errdefs.ErrNotFound)
	}
	return out.Node, err
}

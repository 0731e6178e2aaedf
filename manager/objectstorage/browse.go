package objectstorage

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
)

// ObjectList is a page of what a storage holds.
type ObjectList struct {
	Objects   []*StoredObject
	EndCursor *string
}

// StoredObject is an object, or what several keys begin with up to a slash.
type StoredObject struct {
	Name       string
	Path       string // below the storage's prefix
	Directory  bool
	Size       int64
	ModifiedAt *time.Time
	Etag       string
}

// TestObjectStorageInput names a storage.
type TestObjectStorageInput struct{ ID uuid.UUID }

// TestObjectStoragePayload says what is wrong with a storage, if anything.
type TestObjectStoragePayload struct {
	ObjectStorage *ent.ObjectStorage
	Ok            bool
	Message       *string
	Field         *string
}

// patience bounds what a person waits for.
const patience = 20 * time.Second

// TestObjectStorage lists a page of a storage.
func (s *Service) TestObjectStorage(ctx context.Context, in TestObjectStorageInput) (*TestObjectStoragePayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	row, err := s.usable(ctx, in.ID, "id")
	if err != nil {
		return nil, err
	}
	out := &TestObjectStoragePayload{ObjectStorage: row, Ok: true}
	if _, err := s.page(ctx, row, "", 1, ""); err != nil {
		p, known := problem.From(err)
		if !known {
			return nil, err
		}
		out.Ok, out.Message = false, &p.Message
		if p.Field != "" {
			out.Field = &p.Field
		}
	}
	return out, nil
}

// usable returns a storage that the viewer may use.
func (s *Service) usable(ctx context.Context, id uuid.UUID, field string) (*ent.ObjectStorage, error) {
	row, err := s.client.ObjectStorage.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "object storage", field)
	}
	return row, permit.Inside(ctx, access.Special, row)
}

// Objects returns a page of a directory of a storage that the viewer sees.
func (s *Service) Objects(ctx context.Context, row *ent.ObjectStorage, path string, first int, after string) (*ObjectList, error) {
	if err := permit.Inside(ctx, access.Special, row); err != nil {
		return nil, err
	}
	if first < 0 || first > 1000 {
		return nil, problem.Invalid("first", "%d objects at once", first).WithLimit("1..1000")
	}
	if first == 0 {
		first = 100
	}
	return s.page(ctx, row, path, first, after)
}

func (s *Service) page(ctx context.Context, row *ent.ObjectStorage, path string, first int, after string) (*ObjectList, error) {
	below, err := cleanPrefix("path", path)
	if err != nil {
		return nil, err
	}
	token, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil {
		return nil, problem.Invalid("after", "is not a cursor that a page returned")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	b, err := s.open(ctx, row, inPerson)
	if err != nil {
		return nil, err
	}
	r, err := b.core.ListObjectsV2(b.name, row.Prefix+below, "", string(token), "/", first)
	if err != nil {
		return nil, explain(err)
	}
	out := &ObjectList{Objects: []*StoredObject{}}
	add := func(key string, o StoredObject) {
		o.Path = strings.TrimPrefix(key, row.Prefix)
		if o.Name = strings.TrimPrefix(o.Path, below); o.Name != "" { // the directory's own mark
			out.Objects = append(out.Objects, &o)
		}
	}
	for _, p := range r.CommonPrefixes {
		add(strings.TrimSuffix(p.Prefix, "/"), StoredObject{Directory: true})
	}
	for _, o := range r.Contents {
		add(o.Key, StoredObject{Size: o.Size, ModifiedAt: &o.LastModified, Etag: strings.Trim(o.ETag, `"`)})
	}
	slices.SortFunc(out.Objects, func(a, b *StoredObject) int { return strings.Compare(a.Name, b.Name) })
	if r.IsTruncated && r.NextContinuationToken != "" {
		next := base64.RawURLEncoding.EncodeToString([]byte(r.NextContinuationToken))
		out.EndCursor = &next
	}
	return out, nil
}

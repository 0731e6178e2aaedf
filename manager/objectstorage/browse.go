package objectstorage

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entstorage "github.com/berthhq/berth/ent/objectstorage"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// ObjectList is a page of the objects in a storage.
type ObjectList struct {
	Objects   []*StoredObject
	EndCursor *string
}

// StoredObject is an object, or a common prefix of several keys up to a slash.
type StoredObject struct {
	Name       string
	Path       string // relative to the storage's prefix
	Directory  bool
	Size       int64
	ModifiedAt *time.Time
	Etag       string
}

// TestObjectStorageInput names a storage.
type TestObjectStorageInput struct{ ID uuid.UUID }

// TestObjectStoragePayload is the error of a storage, if any.
type TestObjectStoragePayload struct {
	ObjectStorage *ent.ObjectStorage
	Ok            bool
	Message       *string
	Field         *string
}

// timeout limits requests that a user waits for.
const timeout = 20 * time.Second

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

// usable returns a storage that the viewer can use.
func (s *Service) usable(ctx context.Context, id uuid.UUID, field string) (*ent.ObjectStorage, error) {
	row, err := s.client.ObjectStorage.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "object storage", field)
	}
	return row, permit.Inside(ctx, access.Transfer, row)
}

// Objects returns a page of a directory of a storage that the viewer can see.
func (s *Service) Objects(ctx context.Context, row *ent.ObjectStorage, path string, first int, after string) (*ObjectList, error) {
	if err := permit.Inside(ctx, access.Transfer, row); err != nil {
		return nil, err
	}
	if first < 0 || first > 1000 {
		return nil, problem.Invalid("first", "%d objects are too many for one page", first).WithLimit("1..1000")
	}
	if first == 0 {
		first = 100
	}
	return s.page(ctx, row, path, first, after)
}

// verify checks that a storage speaks S3 before a task reports what it finds at the endpoint.
func (s *Service) verify(ctx context.Context, row *ent.ObjectStorage) error {
	if row.VerifiedAt != nil {
		return nil
	}
	_, err := s.page(ctx, row, "", 1, "")
	if class(err) == problem.CodePermissionDenied {
		return nil // a key without permission to list may still be able to read or write
	}
	return err
}

// proven handles the result of a listing. A storage that answers as S3 is verified. The error
// of one that never did is shown only to superadmins: to others, it would reveal which
// services listen where.
func (s *Service) proven(ctx context.Context, row *ent.ObjectStorage, err error) error {
	switch {
	case row.VerifiedAt != nil || errors.Is(err, context.Canceled):
		return err
	case err == nil, class(err) == problem.CodePermissionDenied:
		up := s.client.ObjectStorage.Update().Where(entstorage.ID(row.ID), entstorage.Endpoint(row.Endpoint), entstorage.Bucket(row.Bucket))
		if failed := up.SetVerifiedAt(clock.Now()).Exec(viewer.SystemContext(ctx)); failed != nil {
			return fmt.Errorf("record that the object storage answers: %w", failed)
		}
		return err
	}
	if v := viewer.From(ctx); v != nil && (v.Superadmin() || v.IsSystem()) {
		return err
	}
	if _, known := problem.From(err); !known {
		return err
	}
	return problem.Precondition("the object storage does not answer a listing with these settings: " +
		"check the endpoint, the region, the bucket, the access key and the secret, and that the endpoint is on the Internet or allowed by the operator").
		WithField("endpoint")
}

// class returns the code of an error, or "".
func class(err error) string {
	p, _ := problem.From(err)
	return p.Code
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
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b, err := s.open(ctx, row, whilePeopleWait)
	if err != nil {
		return nil, err
	}
	r, err := b.core.ListObjectsV2(b.name, row.Prefix+below, "", string(token), "/", first)
	if err = s.proven(ctx, row, explain(err)); err != nil {
		return nil, err
	}
	out := &ObjectList{Objects: []*StoredObject{}}
	add := func(key string, o StoredObject) {
		o.Path = strings.TrimPrefix(key, row.Prefix)
		if o.Name = strings.TrimPrefix(o.Path, below); o.Name != "" { // the marker object of the directory itself
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

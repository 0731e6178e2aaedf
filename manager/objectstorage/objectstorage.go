// Package objectstorage manages the S3 buckets that folders are imported from and exported to.
// Only this package has their credentials: it lists objects and signs the requests with which
// storage proxies transfer the bytes.
package objectstorage

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entstorage "github.com/berthhq/berth/ent/objectstorage"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/manager/vfolder"
)

// Service writes object storages and runs imports and exports.
type Service struct {
	client  *ent.Client
	keys    *seal.Ring
	folders *vfolder.Service
	tasks   *tasks.Service
	way     *way
	log     *slog.Logger
}

// Config has the dependencies of a Service.
type Config struct {
	Client  *ent.Client
	Keys    *seal.Ring // encrypts credentials
	Folders *vfolder.Service
	Tasks   *tasks.Service
	Egress  *egress.Policy // the hosts that connections are allowed to
	Logger  *slog.Logger
}

// New returns a Service, and registers the kinds of its tasks.
func New(cfg Config) *Service {
	s := &Service{client: cfg.Client, keys: cfg.Keys, folders: cfg.Folders, tasks: cfg.Tasks, way: newWay(cfg.Egress), log: cfg.Logger}
	s.tasks.Register(importKind, importer{s})
	s.tasks.Register(exportKind, exporter{s})
	s.tasks.Register(abortKind, aborter{s})
	return s
}

// CreateObjectStorageInput describes a new object storage.
type CreateObjectStorageInput struct {
	Name        string
	Endpoint    string
	Region      *string
	Bucket      string
	Prefix      *string
	Addressing  *entstorage.Addressing
	AccessKeyID *string
	Secret      *string
	ReadOnly    *bool
	Domain      *uuid.UUID // whose members can use it; nil: the viewer's own
}

// UpdateObjectStorageInput changes the fields that are set.
type UpdateObjectStorageInput struct {
	ID          uuid.UUID
	Name        *string
	Endpoint    *string
	Region      *string
	Bucket      *string
	Prefix      *string
	Addressing  *entstorage.Addressing
	AccessKeyID *string
	Secret      *string
	ReadOnly    *bool
}

// DeleteObjectStorageInput names one.
type DeleteObjectStorageInput struct{ ID uuid.UUID }

// ObjectStoragePayload is an object storage after a change.
type ObjectStoragePayload struct{ ObjectStorage *ent.ObjectStorage }

// DeleteObjectStoragePayload is the id of the deleted object storage.
type DeleteObjectStoragePayload struct{ ID uuid.UUID }

// CreateObjectStorage adds an object storage of the viewer or of a domain, without contacting
// it.
func (s *Service) CreateObjectStorage(ctx context.Context, in CreateObjectStorageInput) (*ObjectStoragePayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // no effect after a commit
	c := tx.ObjectStorage.Create()
	on := access.Object{Owner: v.User}
	if in.Domain == nil {
		c.SetOwnerID(v.User)
	} else {
		if _, err := s.client.Domain.Get(ctx, *in.Domain); err != nil {
			return nil, permit.Missing(err, "domain", "domain")
		}
		on = access.Object{Domain: *in.Domain}
		c.SetDomainID(*in.Domain)
	}
	if _, err := permit.Check(ctx, access.Create, access.ObjectStorage, on); err != nil {
		return nil, err
	}
	f, err := described(fields{
		&in.Name, &in.Endpoint, in.Region, &in.Bucket, in.Prefix, in.AccessKeyID, in.Secret,
	})
	if err != nil {
		return nil, err
	}
	if (f.accessKeyID == nil || *f.accessKeyID == "") != (f.secret == nil || *f.secret == "") {
		return nil, problem.Invalid("secret", "enter both access key and secret, or neither for anonymous access")
	}
	c.SetName(*f.name).SetEndpoint(*f.endpoint).SetNillableRegion(f.region).SetBucket(*f.bucket).SetNillablePrefix(f.prefix).
		SetNillableAddressing(in.Addressing).SetNillableAccessKeyID(f.accessKeyID).SetNillableReadOnly(in.ReadOnly)
	if f.secret != nil && *f.secret != "" {
		c.SetSecretSealed(s.keys.Seal(seal.StorageSecret, []byte(*f.secret)))
	}
	if err := checkCount(ctx, tx, in.Domain, v.User); err != nil {
		return nil, err
	}
	row, err := c.Save(ctx)
	if err := taken(in.Name, err); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return &ObjectStoragePayload{ObjectStorage: row.Unwrap()}, nil
}

// mostStorages is the limit of object storages per owner.
const mostStorages = 100

// checkCount checks that limit, with a lock so that concurrent requests cannot exceed it.
func checkCount(ctx context.Context, tx *ent.Tx, domain *uuid.UUID, user uuid.UUID) error {
	q, of := tx.ObjectStorage.Query(), user
	if domain != nil {
		q.Where(entstorage.DomainID(*domain))
		of = *domain
	} else {
		q.Where(entstorage.OwnerID(user))
	}
	if err := store.Lock(ctx, tx, "object storages of "+of.String()); err != nil {
		return err
	}
	n, err := q.Count(ctx)
	if err == nil && n >= mostStorages {
		return problem.Exhausted("there are already %d object storages", n).WithLimit(fmt.Sprint(mostStorages))
	}
	return err
}

// UpdateObjectStorage changes an object storage. The secret is sent only to the endpoint that
// it was given for: a change of the endpoint or the access key requires the secret again.
func (s *Service) UpdateObjectStorage(ctx context.Context, in UpdateObjectStorageInput) (*ObjectStoragePayload, error) {
	row, err := s.client.ObjectStorage.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "object storage", "id")
	}
	if err := permit.To(ctx, access.Update, row); err != nil {
		return nil, err
	}
	f, err := described(fields{in.Name, in.Endpoint, in.Region, in.Bucket, in.Prefix, in.AccessKeyID, in.Secret})
	if err != nil {
		return nil, err
	}
	moved := f.endpoint != nil && *f.endpoint != row.Endpoint || f.accessKeyID != nil && *f.accessKeyID != row.AccessKeyID
	key := row.AccessKeyID
	if f.accessKeyID != nil {
		key = *f.accessKeyID
	}
	switch {
	case moved && f.secret == nil && len(row.SecretSealed) > 0 && key != "":
		return nil, problem.Invalid("secret", "enter the secret again when the endpoint or the access key changes")
	case f.secret != nil && (*f.secret == "") != (key == ""):
		return nil, problem.Invalid("secret", "enter both access key and secret, or neither for anonymous access")
	}
	up := s.client.ObjectStorage.UpdateOne(row).SetNillableName(f.name).SetNillableEndpoint(f.endpoint).SetNillableRegion(f.region).
		SetNillableBucket(f.bucket).SetNillablePrefix(f.prefix).SetNillableAddressing(in.Addressing).
		SetNillableAccessKeyID(f.accessKeyID).SetNillableReadOnly(in.ReadOnly)
	if f.endpoint != nil || f.region != nil || f.bucket != nil || f.prefix != nil || in.Addressing != nil || f.accessKeyID != nil || f.secret != nil {
		up.ClearVerifiedAt()
	}
	switch {
	case key == "":
		up.ClearSecretSealed()
	case f.secret != nil:
		up.SetSecretSealed(s.keys.Seal(seal.StorageSecret, []byte(*f.secret)))
	}
	name := row.Name
	if f.name != nil {
		name = *f.name
	}
	row, err = up.Save(ctx)
	if err := taken(name, err); err != nil {
		return nil, err
	}
	return &ObjectStoragePayload{ObjectStorage: row}, nil
}

// DeleteObjectStorage deletes an object storage that no task uses. The contents of the bucket
// stay.
func (s *Service) DeleteObjectStorage(ctx context.Context, in DeleteObjectStorageInput) (*DeleteObjectStoragePayload, error) {
	row, err := s.client.ObjectStorage.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "object storage", "id")
	}
	if err := permit.To(ctx, access.Delete, row); err != nil {
		return nil, err
	}
	busy, err := s.client.Task.Query().Where(task.KindIn(importKind, exportKind, abortKind), task.EndedAtIsNil()).All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	for _, t := range busy {
		var of struct{ Storage uuid.UUID }
		if err := json.Unmarshal(t.Input, &of); err == nil && of.Storage == row.ID {
			return nil, problem.Precondition("a task uses the object storage: %s", t.Title)
		}
	}
	if err := s.client.ObjectStorage.DeleteOne(row).Exec(ctx); err != nil {
		return nil, fmt.Errorf("forget object storage: %w", err)
	}
	return &DeleteObjectStoragePayload{ID: row.ID}, nil
}

func taken(name string, err error) error {
	if ent.IsConstraintError(err) {
		return problem.Exists("name", "an object storage is already named %q", name)
	}
	if err != nil {
		return fmt.Errorf("store object storage: %w", err)
	}
	return nil
}

// fields are the texts of an object storage; nil is not set.
type fields struct{ name, endpoint, region, bucket, prefix, accessKeyID, secret *string }

// described checks the fields and returns them in canonical form.
func described(f fields) (out fields, err error) {
	out = f
	check := func(said *string, clean func(string) (string, error)) *string {
		if said == nil || err != nil {
			return said
		}
		var text string
		text, err = clean(*said)
		return &text
	}
	line := func(field string) func(string) (string, error) {
		return func(s string) (string, error) {
			if s == "" {
				return "", nil
			}
			return s, naming.Line(field, s, maxCredential)
		}
	}
	out.name = check(f.name, func(s string) (string, error) { return s, naming.Name("name", s) })
	out.endpoint = check(f.endpoint, cleanEndpoint)
	out.region = check(f.region, cleanRegion)
	out.bucket = check(f.bucket, cleanBucket)
	out.prefix = check(f.prefix, func(s string) (string, error) { return cleanPrefix("prefix", s) })
	out.accessKeyID = check(f.accessKeyID, line("accessKeyId"))
	out.secret = check(f.secret, line("secret"))
	return out, err
}

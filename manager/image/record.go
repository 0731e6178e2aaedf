package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
)

// maxLabels limits the labels that are stored of one image, in bytes.
const maxLabels = 64 << 10

// errNothing reports that a tag has no image that can run here.
var errNothing = errors.New("has no Linux image")

// record stores the images of a tag, one row for each architecture, and returns the rows. An
// existing row keeps its id.
func (s *Service) record(ctx context.Context, r *ent.Registry, name string, found []remote.Image) ([]*ent.Image, error) {
	if len(found) == 0 {
		return nil, fmt.Errorf("image %s: %w: %w", name, errdefs.ErrFailedPrecondition, errNothing)
	}
	if err := s.stray(ctx, r, name); err != nil {
		return nil, err
	}
	var rows []*ent.Image
	seen := map[string]bool{}
	for _, f := range found {
		if seen[f.Architecture] { // variants of one architecture: the first is the most basic
			continue
		}
		seen[f.Architecture] = true
		row, err := s.recordOne(ctx, r, name, f)
		if err != nil {
			return nil, fmt.Errorf("record image %s: %w", name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (s *Service) recordOne(ctx context.Context, r *ent.Registry, name string, f remote.Image) (*ent.Image, error) {
	labels, err := storable(f.Labels)
	if err != nil {
		return nil, err
	}
	id, err := s.client.Image.Create().
		SetReference(r.Host + "/" + name).SetName(name).SetArchitecture(f.Architecture).SetDigest(f.Digest).
		SetSizeBytes(f.Size).SetLabels(labels).SetStatus(entimage.StatusAlive).SetRegistryID(r.ID).
		OnConflict(sql.ConflictColumns(entimage.FieldReference, entimage.FieldArchitecture)).
		Update(func(u *ent.ImageUpsert) {
			u.UpdateDigest().UpdateSizeBytes().UpdateLabels().UpdateStatus().UpdateRegistryID()
			u.SetIgnore(entimage.FieldID)
		}).
		ID(ctx)
	if err != nil {
		return nil, err
	}
	return s.client.Image.Get(ctx, id)
}

// storable returns an error for labels that the database cannot store, or that are too long.
func storable(labels map[string]string) (map[string]string, error) {
	size := 0
	for k, v := range labels {
		size += len(k) + len(v)
		if !utf8.ValidString(k) || !utf8.ValidString(v) || strings.ContainsRune(k+v, 0) {
			return nil, fmt.Errorf("label %q is not UTF-8 text without NUL: %w", k, errdefs.ErrInvalidArgument)
		}
	}
	if size > maxLabels {
		return nil, fmt.Errorf("labels have %d bytes, more than %d: %w", size, maxLabels, errdefs.ErrInvalidArgument)
	}
	if labels == nil {
		labels = map[string]string{}
	}
	return labels, nil
}

// pair is the unique key of a row.
type pair struct{ reference, architecture string }

// gone marks the images of a registry that the scan has not found, except those whose tag
// could not be read.
func (s *Service) gone(ctx context.Context, r *ent.Registry, met map[pair]bool, unread map[string]bool) error {
	alive, err := s.client.Image.Query().Where(entimage.RegistryID(r.ID), entimage.StatusEQ(entimage.StatusAlive)).All(ctx)
	if err != nil {
		return fmt.Errorf("read images: %w", err)
	}
	var lost []uuid.UUID
	for _, i := range alive {
		if !met[pair{i.Reference, i.Architecture}] && !unread[i.Reference] {
			lost = append(lost, i.ID)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return s.client.Image.Update().Where(entimage.IDIn(lost...)).SetStatus(entimage.StatusGone).Exec(ctx)
}

// explain changes the class of a registry's error: its rejection of our credentials does not
// mean that the viewer is not logged in.
func explain(r *ent.Registry, what string, err error) error {
	switch {
	case errdefs.IsNotFound(err):
		return problem.NotFound(what).Because(err)
	case errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		return problem.Precondition("registry %s refuses access to %s; check its credentials", r.Name, what).Because(err)
	case errdefs.IsNotImplemented(err):
		return problem.Precondition("registry %s cannot list its images; register them one by one", r.Name).Because(err)
	case errdefs.IsUnavailable(err):
		return problem.Unavailable("%s does not answer as an image registry", r.Name).Because(err)
	}
	return err
}

package image

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"

	"github.com/berthhq/berth/ent/deploymentrevision"
	entimage "github.com/berthhq/berth/ent/image"
)

// RegisterImageInput names one image of a known registry.
type RegisterImageInput struct{ Reference string }

// ImagePayload is a registered image.
type ImagePayload struct{ Image *ent.Image }

// RegisterImage reads one tag and adds or updates it. For an image with several architectures,
// it adds all and returns the one that Resolve would choose.
func (s *Service) RegisterImage(ctx context.Context, in RegisterImageInput) (*ImagePayload, error) {
	const field = "reference"
	if _, err := permit.Check(ctx, access.Create, access.Image, access.Object{}); err != nil {
		return nil, err
	}
	ref, err := parse(field, in.Reference)
	if err != nil {
		return nil, err
	}
	r, err := s.registryOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	ref.host = r.Host
	lost, err := s.orphans(ctx, r, []string{ref.name()})
	if err != nil {
		return nil, err
	}
	if lost[ref.name()] {
		return nil, problem.Precondition("image %s cannot be registered: %s", ref.full(), orphaned).WithField(field)
	}
	from, err := s.reach(r)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	content, err := from.Inspect(ctx, ref.name())
	if err == nil {
		err = storableAll(content.Images)
	}
	if err == nil {
		err = s.verify(ctx, r, from, ref.name(), content)
	}
	if err != nil {
		err = explain(r, "image "+ref.full(), err)
		return nil, fmt.Errorf("register image: %w", inField(err, field))
	}
	var rows []*ent.Image
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		got, err := s.record(ctx, tx.Client(), r, []tagged{{ref.name(), content.Images}})
		rows = got[ref.name()].rows
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("register image: %w", err)
	}
	for i, row := range rows {
		rows[i] = row.Unwrap()
	}
	best := preferred(rows)
	if ref.digest != "" && best.Digest != ref.digest {
		return nil, problem.Invalid(field, "now has the digest %s", best.Digest)
	}
	return &ImagePayload{Image: best}, nil
}

// registryOf returns the registry of a reference. A name without a host is unambiguous only if
// there is one registry.
func (s *Service) registryOf(ctx context.Context, ref reference) (*ent.Registry, error) {
	q := s.client.Registry.Query()
	if ref.host != "" {
		q.Where(registry.Host(ref.host))
	}
	r, err := q.Only(ctx)
	switch {
	case err == nil:
		return r, nil
	case ent.IsNotSingular(err):
		return nil, problem.Invalid("reference", "must begin with the host of the registry, as there are several registries")
	case ent.IsNotFound(err) && ref.host == "":
		return nil, problem.NotFound("registry").WithField("reference")
	case ent.IsNotFound(err):
		return nil, problem.NotFound("registry " + ref.host).WithField("reference")
	}
	return nil, fmt.Errorf("read registry: %w", err)
}

// inField adds the input's field to an error without one.
func inField(err error, field string) error {
	if p, ok := err.(*problem.Error); ok {
		return p.WithField(field)
	}
	return err
}

// DeleteImageInput names the image to remove.
type DeleteImageInput struct{ ID uuid.UUID }

// DeleteImagePayload is the id of the removed image.
type DeleteImagePayload struct{ ID uuid.UUID }

// DeleteImage removes an image. If sessions were started from it, its row stays for their
// history, marked as gone. An image that was made of a session is also deleted from its registry.
func (s *Service) DeleteImage(ctx context.Context, in DeleteImageInput) (*DeleteImagePayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	image, err := s.client.Image.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "image", "id")
	}
	if err := permit.To(ctx, access.Delete, image); err != nil {
		return nil, err
	}
	d, err := store.Serving(ctx, s.client.DeploymentRevision, deploymentrevision.Image(image.Reference))
	if err != nil {
		return nil, err
	}
	if d != nil {
		return nil, problem.Precondition("deployment %s uses the image", d.Name).WithField("id")
	}
	if image.SessionID != nil {
		return &DeleteImagePayload{ID: in.ID}, s.deleteOwn(ctx, image)
	}
	err = s.client.Image.DeleteOne(image).Exec(ctx)
	if ent.IsConstraintError(err) {
		err = s.client.Image.UpdateOneID(in.ID).SetStatus(entimage.StatusGone).Exec(ctx)
	}
	if ent.IsNotFound(err) {
		return nil, problem.NotFound("image").WithField("id")
	}
	if err != nil {
		return nil, fmt.Errorf("forget image: %w", err)
	}
	return &DeleteImagePayload{ID: in.ID}, nil
}

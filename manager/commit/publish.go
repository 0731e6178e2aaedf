package commit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/task"
)

// Made is an image that an agent has sent to the registry.
type Made struct {
	Digest  string
	Session uuid.UUID
	Base    string // reference of the session's image
	Adds    int64  // bytes that public images do not have
}

// Publish verifies an image at the registry, stores its row and gives it its tag, unless limits forbid it. also
// runs in the same transaction, before the tag; nil = nothing. After an error, the image is deleted from the
// registry.
func (s *Service) Publish(ctx context.Context, p *task.Progress, reg *ent.Registry, t Target, m Made, also func(context.Context, *ent.Tx, *ent.Image) error) (*ent.Image, error) {
	img, err := s.publish(ctx, p, reg, t, m, also)
	if err != nil {
		drop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, s.Images.DropOwn(drop, reg, t.Repository, m.Digest))
	}
	return img, nil
}

func (s *Service) publish(ctx context.Context, p *task.Progress, reg *ent.Registry, t Target, m Made, also func(context.Context, *ent.Tx, *ent.Image) error) (img *ent.Image, err error) {
	found, err := s.Images.InspectOwn(ctx, reg, t.Repository, m.Digest)
	if err != nil {
		return nil, err
	}
	err = p.InTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := s.Room(ctx, tx, reg.Host, t, m.Adds); err != nil {
			return err
		}
		old, err := s.replaced(ctx, tx, reg.Host, t)
		if err != nil {
			return err
		}
		if img, err = write(ctx, tx, old, reg, t, m, found); err != nil {
			return fmt.Errorf("record image: %w", err)
		}
		if err := s.Images.KeepOwn(ctx, tx, img, old, found, image.Saved{Session: m.Session, Base: m.Base, Adds: m.Adds, By: t.Owner}); err != nil {
			return err
		}
		if also != nil {
			if err := also(ctx, tx, img); err != nil {
				return err
			}
		}
		// The row is visible after the tag: the transaction ends next.
		return s.Images.TagOwn(ctx, reg, t.Repository, m.Digest, t.Tag)
	})
	return img, err
}

// write inserts the row of an image, or updates the one that it replaces.
func write(ctx context.Context, tx *ent.Tx, old *ent.Image, reg *ent.Registry, t Target, m Made, found remote.Image) (*ent.Image, error) {
	visibility := entimage.VisibilityPrivate
	if t.Project != nil {
		visibility = entimage.VisibilityProject
	}
	at := clock.Now()
	if old != nil {
		up := tx.Image.UpdateOne(old).SetArchitecture(found.Architecture).SetDigest(found.Digest).SetTagDigest(found.Digest).SetSizeBytes(found.Size).
			SetLabels(image.Labels(found)).SetSignedBy("").SetStatus(entimage.StatusAlive).SetRegistryID(reg.ID).SetNillableDescription(t.Description).
			SetSessionID(m.Session).SetBase(m.Base).SetAddedBytes(m.Adds).SetCommittedAt(at)
		if t.Project != nil {
			up.SetVisibility(visibility).SetProjectID(*t.Project)
		}
		return up.Save(ctx)
	}
	return tx.Image.Create().SetReference(reg.Host + "/" + t.Name()).SetName(t.Name()).SetArchitecture(found.Architecture).
		SetDigest(found.Digest).SetTagDigest(found.Digest).SetSizeBytes(found.Size).SetLabels(image.Labels(found)).SetRegistryID(reg.ID).
		SetVisibility(visibility).SetNillableDescription(t.Description).SetDomainID(t.Domain).SetOwnerID(t.Owner).
		SetNillableProjectID(t.Project).SetSessionID(m.Session).SetBase(m.Base).SetAddedBytes(m.Adds).SetCommittedAt(at).Save(ctx)
}

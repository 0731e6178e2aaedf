package image

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// UpdateRegistryInput changes the fields that are not nil. Empty credentials are removed. The
// host cannot change, because it is part of the name of every image.
type UpdateRegistryInput struct {
	ID        uuid.UUID
	Name      *string
	PlainHTTP *bool
	Username  *string
	Password  *string
	RegistrySettings
}

// UpdateRegistry changes the name and the connection data of a registry.
func (s *Service) UpdateRegistry(ctx context.Context, in UpdateRegistryInput) (*RegistryPayload, error) {
	r, err := s.changeable(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if in.Name != nil {
		if err := naming.Name("name", *in.Name); err != nil {
			return nil, err
		}
	}
	if err := checkCredentials(in.Username, in.Password); err != nil {
		return nil, err
	}
	if err := s.checkSettings(ctx, &in.RegistrySettings); err != nil {
		return nil, err
	}
	u := s.client.Registry.UpdateOne(r).SetNillableName(in.Name).SetNillablePlainHTTP(in.PlainHTTP).SetNillableUsername(in.Username)
	switch {
	case in.Password == nil:
	case *in.Password == "":
		u.ClearPasswordSealed()
	default:
		u.SetPasswordSealed(s.keys.Seal(seal.RegistryPassword, []byte(*in.Password)))
	}
	in.set(u.Mutation())
	if err := s.setMirrors(u.Mutation(), r, in.Mirrors); err != nil {
		return nil, err
	}
	keys := r.SignatureKeys
	r, err = u.Save(ctx)
	if ent.IsNotFound(err) {
		return nil, problem.NotFound("registry").WithField("id")
	}
	if err != nil {
		return nil, fmt.Errorf("change registry: %w", err)
	}
	if r.SignatureKeys != keys {
		if err := s.reread(ctx, r); err != nil {
			return nil, err
		}
	}
	return &RegistryPayload{Registry: r}, nil
}

// DeleteRegistryInput names the registry to remove.
type DeleteRegistryInput struct{ ID uuid.UUID }

// DeleteRegistryPayload is the registry that was removed.
type DeleteRegistryPayload struct{ ID uuid.UUID }

// DeleteRegistry deletes a registry and its images, unless live sessions use them. Images of
// ended sessions stay, marked as gone and without a registry.
func (s *Service) DeleteRegistry(ctx context.Context, in DeleteRegistryInput) (*DeleteRegistryPayload, error) {
	r, err := s.changeable(ctx, in.ID, access.Delete)
	if err != nil {
		return nil, err
	}
	err = store.InTx(viewer.SystemContext(ctx), s.client, func(tx *ent.Tx) error {
		ctx := viewer.SystemContext(ctx)
		// A session that is being created locks the row of its image: wait for it.
		if _, err := tx.Image.Query().Where(entimage.RegistryID(r.ID)).Order(entimage.ByID()).ForUpdate().IDs(ctx); err != nil {
			return fmt.Errorf("lock images: %w", err)
		}
		live := session.And(session.HasImageWith(entimage.RegistryID(r.ID)), session.TerminatedAtIsNil())
		n, err := tx.Session.Query().Where(live).Count(ctx)
		if err != nil {
			return fmt.Errorf("count sessions: %w", err)
		}
		if n > 0 {
			images, err := tx.Session.Query().Where(live).QueryImage().Count(ctx)
			if err != nil {
				return fmt.Errorf("count images: %w", err)
			}
			return problem.Precondition("images of registry %s in use: %d; sessions that use them and have not ended: %d", r.Name, images, n).WithField("id")
		}
		return remove(ctx, tx, r.ID)
	})
	if err != nil {
		return nil, err
	}
	return &DeleteRegistryPayload{ID: r.ID}, nil
}

func remove(ctx context.Context, tx *ent.Tx, id uuid.UUID) error {
	_, err := tx.Image.Delete().Where(entimage.RegistryID(id), func(i *sql.Selector) {
		s := sql.Table(session.Table)
		i.Where(sql.NotExists(sql.Select(s.C(session.FieldID)).From(s).Where(sql.ColumnsEQ(s.C(session.FieldImageID), i.C(entimage.FieldID)))))
	}).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove images: %w", err)
	}
	if err := tx.Image.Update().Where(entimage.RegistryID(id)).SetStatus(entimage.StatusGone).Exec(ctx); err != nil {
		return fmt.Errorf("mark missing images: %w", err)
	}
	if _, err := tx.Registry.Delete().Where(registry.ID(id)).Exec(ctx); err != nil {
		return fmt.Errorf("remove registry: %w", err)
	}
	return nil
}

// changeable returns a registry if the viewer can do op on it.
func (s *Service) changeable(ctx context.Context, id uuid.UUID, op access.Operation) (*ent.Registry, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	r, err := s.client.Registry.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "registry", "id")
	}
	return r, permit.To(ctx, op, r)
}

package identity

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/invitation"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// CreateDomainInput describes a new domain.
type CreateDomainInput struct {
	Name        string
	Description *string
	Policy      *uuid.UUID
}

// DomainPayload is a domain after a change.
type DomainPayload struct{ Domain *ent.Domain }

// maxDescription is a number of characters.
const maxDescription = 1000

// CreateDomain creates a domain.
func (s *Service) CreateDomain(ctx context.Context, in CreateDomainInput) (*DomainPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.Domain, access.Object{}); err != nil {
		return nil, err
	}
	if err := called(in.Name, in.Description); err != nil {
		return nil, err
	}
	var d *ent.Domain
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		if err := bindable(ctx, tx, in.Policy); err != nil {
			return err
		}
		d, err = tx.Domain.Create().SetName(in.Name).SetNillableDescription(in.Description).Save(ctx)
		if err != nil || in.Policy == nil {
			return err
		}
		return tx.PolicyAttachment.Create().SetPolicyID(*in.Policy).SetDomainID(d.ID).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("create domain: %w", err)
	}
	return &DomainPayload{Domain: d.Unwrap()}, nil
}

// called checks a name and a description.
func called(name string, description *string) error {
	if err := naming.Name("name", name); err != nil {
		return err
	}
	if description == nil {
		return nil
	}
	return naming.Line("description", *description, maxDescription)
}

// UpdateDomainInput changes the fields that are not nil. If RegistriesRestricted, the domain's
// users can start images only from Registries.
type UpdateDomainInput struct {
	ID                   uuid.UUID
	Name                 *string
	Description          *string
	Active               *bool
	RegistriesRestricted *bool
	Registries           []uuid.UUID
	TOTPRequired         *bool
	PasswordMinLength    *int
	PasswordMaxAgeDays   *int
	SignUp               *domain.SignUp
}

// DeleteDomainInput names the domain twice, as a protection against mistakes.
type DeleteDomainInput struct {
	ID   uuid.UUID
	Name string
}

// DeleteDomainPayload is the id of the deleted domain.
type DeleteDomainPayload struct{ ID uuid.UUID }

const (
	minPasswordLength, maxPasswordLength = 8, 128
	maxPasswordAge                       = 3650 // days
)

// UpdateDomain changes a domain. Deactivation disconnects all of its users; the viewer's own
// domain and that of the last superadmin cannot be deactivated.
func (s *Service) UpdateDomain(ctx context.Context, in UpdateDomainInput) (*DomainPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	var d *ent.Domain
	var cut []uuid.UUID
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		d, cut, err = updateDomain(ctx, tx, in)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change domain %s: %w", in.ID, err)
	}
	for _, one := range cut {
		s.logins.Disconnect(ctx, one)
	}
	return &DomainPayload{Domain: d.Unwrap()}, nil
}

func updateDomain(ctx context.Context, tx *ent.Tx, in UpdateDomainInput) (after *ent.Domain, cut []uuid.UUID, err error) {
	stops := in.Active != nil && !*in.Active
	if stops {
		if err := lockSuperadmins(ctx, tx); err != nil {
			return nil, nil, err
		}
	}
	before, err := permitted(ctx, tx, access.Update, in.ID)
	if err != nil {
		return nil, nil, err
	}
	if stops && before.Active {
		if cut, err = stoppable(ctx, tx, before); err != nil {
			return nil, nil, err
		}
	}
	up := before.Update().SetNillableName(in.Name).SetNillableDescription(in.Description).SetNillableActive(in.Active).
		SetNillableRegistriesRestricted(in.RegistriesRestricted).SetNillableTotpRequired(in.TOTPRequired).
		SetNillablePasswordMinLength(in.PasswordMinLength).SetNillablePasswordMaxAgeDays(in.PasswordMaxAgeDays).
		SetNillableSignUp(in.SignUp)
	if in.Registries != nil {
		known, err := tx.Registry.Query().Where(registry.IDIn(in.Registries...)).Count(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("read registries: %w", err)
		}
		if known != len(in.Registries) {
			return nil, nil, problem.NotFound("registry").WithField("registries")
		}
		up.ClearRegistries().AddRegistryIDs(in.Registries...)
	}
	after, err = up.Save(ctx)
	return after, cut, err
}

// permitted returns and locks a domain on which the viewer can do op.
func permitted(ctx context.Context, tx *ent.Tx, op access.Operation, id uuid.UUID) (*ent.Domain, error) {
	d, err := tx.Domain.Query().Where(domain.ID(id)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "domain", "id")
	}
	_, err = permit.Check(ctx, op, access.Domain, access.Object{ID: d.ID, Domain: d.ID})
	return d, err
}

// stoppable checks whether a domain can be deactivated, and returns the users to disconnect.
func stoppable(ctx context.Context, tx *ent.Tx, d *ent.Domain) ([]uuid.UUID, error) {
	if viewer.From(ctx).Domain == d.ID {
		return nil, problem.Precondition("you cannot deactivate your own domain").WithField("active")
	}
	left, err := superadmins(tx).Where(user.DomainIDNEQ(d.ID)).Exist(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read superadmins: %w", err)
	}
	if !left {
		return nil, problem.Precondition("the domain of the last active superadmin cannot be deactivated").WithField("active")
	}
	return tx.User.Query().Where(user.DomainID(d.ID), user.StatusEQ(user.StatusActive)).IDs(viewer.SystemContext(ctx))
}

// DeleteDomain removes a domain without active users and projects.
func (s *Service) DeleteDomain(ctx context.Context, in DeleteDomainInput) (*DeleteDomainPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		d, err := permitted(ctx, tx, access.Delete, in.ID)
		if err != nil {
			return err
		}
		if d.Name != in.Name {
			return problem.Invalid("name", "is not the domain's name")
		}
		if viewer.From(ctx).Domain == d.ID {
			return problem.Precondition("you cannot purge your own domain")
		}
		return deleteDomain(viewer.SystemContext(ctx), tx, d)
	})
	if err != nil {
		return nil, fmt.Errorf("purge domain %s: %w", in.ID, err)
	}
	return &DeleteDomainPayload{ID: in.ID}, nil
}

func deleteDomain(ctx context.Context, tx *ent.Tx, d *ent.Domain) error {
	users, err := tx.User.Query().Where(user.DomainID(d.ID), Present()).Count(ctx)
	if err != nil {
		return fmt.Errorf("count users: %w", err)
	}
	projects, err := tx.Project.Query().Where(project.DomainID(d.ID)).Count(ctx)
	if err != nil {
		return fmt.Errorf("count projects: %w", err)
	}
	if users+projects > 0 {
		return problem.Precondition("domain %s still has %s and %s", d.Name, counted(users, "user"), counted(projects, "project"))
	}
	if _, err := tx.Invitation.Delete().Where(invitation.DomainID(d.ID)).Exec(ctx); err != nil {
		return fmt.Errorf("remove invitations: %w", err)
	}
	if _, err := tx.RoleGrant.Delete().Where(rolegrant.ScopeID(d.ID)).Exec(ctx); err != nil {
		return fmt.Errorf("remove grants: %w", err)
	}
	// Without projects, only deleted folders still refer to purged users.
	if _, err := tx.Vfolder.Delete().Where(vfolder.DomainID(d.ID), vfolder.StatusEQ(vfolder.StatusDeleted)).Exec(ctx); err != nil {
		return fmt.Errorf("remove folders: %w", err)
	}
	if _, err := tx.User.Delete().Where(user.DomainID(d.ID)).Exec(ctx); err != nil {
		return fmt.Errorf("remove purged users: %w", err)
	}
	return tx.Domain.DeleteOne(d).Exec(ctx)
}

// counted writes a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (in *UpdateDomainInput) check() error {
	if in.Name != nil {
		if err := called(*in.Name, nil); err != nil {
			return err
		}
	}
	if in.Description != nil {
		if err := called("name", in.Description); err != nil {
			return err
		}
	}
	if n := in.PasswordMinLength; n != nil && (*n < minPasswordLength || *n > maxPasswordLength) {
		return problem.Invalid("passwordMinLength", "must be from %d to %d", minPasswordLength, maxPasswordLength).
			WithLimit(fmt.Sprint(maxPasswordLength))
	}
	if n := in.PasswordMaxAgeDays; n != nil && (*n < 0 || *n > maxPasswordAge) {
		return problem.Invalid("passwordMaxAgeDays", "must be from 0 (never) to %d", maxPasswordAge).WithLimit(fmt.Sprint(maxPasswordAge))
	}
	if in.SignUp != nil && domain.SignUpValidator(*in.SignUp) != nil {
		return problem.Invalid("signUp", "is not a way to sign up")
	}
	slices.SortFunc(in.Registries, compareIDs)
	in.Registries = slices.Compact(in.Registries)
	return nil
}

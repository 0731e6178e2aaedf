// Package role manages custom roles, grants them to users on scopes, and returns what a viewer can
// do with an object. Permissions are read together with the credential of every request; this
// package writes them, and makes sure that no one grants more than they have themselves.
package role

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entrole "github.com/berthhq/berth/ent/role"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// Disconnecter closes the connections of a user whose permissions have changed. It is called after
// the commit.
type Disconnecter interface {
	Disconnect(ctx context.Context, user uuid.UUID)
}

// Service writes roles and their grants.
type Service struct {
	client *ent.Client
	open   Disconnecter
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Open   Disconnecter
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{client: cfg.Client, open: cfg.Open} }

// Permission is the list of operations that a role allows on one kind of object.
type Permission struct {
	Entity     access.Entity
	Operations []access.Operation
}

// CreateRoleInput describes a new role.
type CreateRoleInput struct {
	Name        string
	Description *string
	Allows      []Permission
}

// UpdateRoleInput changes the fields that are not nil.
type UpdateRoleInput struct {
	ID          uuid.UUID
	Name        *string
	Description *string
	Allows      []Permission // nil: unchanged
}

// DeleteRoleInput names the role to delete.
type DeleteRoleInput struct{ ID uuid.UUID }

// RolePayload is a role after a change.
type RolePayload struct{ Role *ent.Role }

// DeleteRolePayload is the id of the deleted role.
type DeleteRolePayload struct{ ID uuid.UUID }

const maxDescription = 1000 // characters

// CreateRole creates a role. No user has it until it is granted.
func (s *Service) CreateRole(ctx context.Context, in CreateRoleInput) (*RolePayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.Role, access.Object{}); err != nil {
		return nil, err
	}
	allows, err := called(&in.Name, in.Description, in.Allows)
	if err != nil {
		return nil, err
	}
	made, err := s.client.Role.Create().SetName(in.Name).SetNillableDescription(in.Description).SetPermissions(allows).Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, problem.Exists("name", "a role is already named %q", in.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("create role: %w", err)
	}
	return &RolePayload{Role: made}, nil
}

// UpdateRole changes a role, at once for all users who have it. The viewer must have added
// permissions wherever the role is granted.
func (s *Service) UpdateRole(ctx context.Context, in UpdateRoleInput) (*RolePayload, error) {
	var after *ent.Role
	holders, err := s.change(ctx, access.Update, in.ID, func(tx *ent.Tx, before *ent.Role, grants []*ent.RoleGrant) error {
		allows, err := called(in.Name, in.Description, in.Allows)
		if err != nil {
			return err
		}
		up := before.Update().SetNillableName(in.Name).SetNillableDescription(in.Description)
		if in.Allows != nil {
			for _, g := range grants {
				if err := exceeds(ctx, tx, added(before.Permissions, allows), g.Scope, g.ScopeID); err != nil {
					return err
				}
			}
			up.SetPermissions(allows)
		}
		after, err = up.Save(ctx)
		if ent.IsConstraintError(err) {
			return problem.Exists("name", "a role is already named %q", *in.Name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change role %s: %w", in.ID, err)
	}
	if in.Allows != nil {
		s.disconnect(ctx, holders)
	}
	return &RolePayload{Role: after.Unwrap()}, nil
}

// DeleteRole revokes all grants of a role and deletes it.
func (s *Service) DeleteRole(ctx context.Context, in DeleteRoleInput) (*DeleteRolePayload, error) {
	holders, err := s.change(ctx, access.Delete, in.ID, func(tx *ent.Tx, r *ent.Role, _ []*ent.RoleGrant) error {
		return tx.Role.DeleteOne(r).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("delete role %s: %w", in.ID, err)
	}
	s.disconnect(ctx, holders)
	return &DeleteRolePayload{ID: in.ID}, nil
}

// change runs f on a role that the viewer can change, locked, with all its grants, and returns the
// users who have it.
func (s *Service) change(ctx context.Context, op access.Operation, id uuid.UUID, f func(*ent.Tx, *ent.Role, []*ent.RoleGrant) error) ([]uuid.UUID, error) {
	var holders []uuid.UUID
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		r, err := locked(ctx, tx, id, "id")
		if err != nil {
			return err
		}
		if _, err := permit.Check(ctx, op, access.Role, access.Object{ID: id}); err != nil {
			return err
		}
		// The change affects all users who have the role, including those that the viewer cannot
		// see.
		grants, err := tx.RoleGrant.Query().Where(rolegrant.RoleID(id)).All(everywhere(ctx))
		if err != nil {
			return fmt.Errorf("read grants: %w", err)
		}
		for _, g := range grants {
			holders = append(holders, g.UserID)
		}
		return f(tx, r, grants)
	})
	return holders, err
}

func (s *Service) disconnect(ctx context.Context, users []uuid.UUID) {
	slices.SortFunc(users, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	for _, u := range slices.Compact(users) {
		s.open.Disconnect(ctx, u)
	}
}

// locked reads a role and locks it until the transaction ends.
func locked(ctx context.Context, tx *ent.Tx, id uuid.UUID, field string) (*ent.Role, error) {
	r, err := tx.Role.Query().Where(entrole.ID(id)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "role", field)
	}
	return r, nil
}

// called checks the fields of a role, and returns its permissions in the order of the table.
func called(name, description *string, allows []Permission) (access.Permissions, error) {
	if name != nil {
		if err := naming.Name("name", *name); err != nil {
			return nil, err
		}
	}
	if description != nil {
		if err := naming.Line("description", *description, maxDescription); err != nil {
			return nil, err
		}
	}
	out := access.Permissions{}
	for i, p := range allows {
		if !slices.Contains(access.Entities(), p.Entity) {
			return nil, problem.Invalid(fmt.Sprintf("allows[%d].entity", i), "%q is not a kind of object", p.Entity)
		}
		if out[p.Entity] != nil {
			return nil, problem.Invalid(fmt.Sprintf("allows[%d].entity", i), "%s is named twice", p.Entity)
		}
		if len(p.Operations) == 0 {
			return nil, problem.Invalid(fmt.Sprintf("allows[%d].operations", i), "must not be empty")
		}
		for _, op := range p.Operations {
			if !access.Applies(op, p.Entity) {
				return nil, problem.Invalid(fmt.Sprintf("allows[%d].operations", i), "%q is not an operation on %s", op, p.Entity)
			}
		}
		for _, op := range access.Operations() {
			if slices.Contains(p.Operations, op) {
				out[p.Entity] = append(out[p.Entity], op)
			}
		}
	}
	return out, nil
}

// added returns the permissions in after that are not in before.
func added(before, after access.Permissions) access.Permissions {
	out := access.Permissions{}
	for e, list := range after {
		for _, op := range list {
			if !slices.Contains(before[e], op) {
				out[e] = append(out[e], op)
			}
		}
	}
	return out
}

// Listed returns permissions in the order in which they are shown.
func Listed(p access.Permissions) []*Permission {
	out := []*Permission{}
	for _, e := range access.Entities() {
		if len(p[e]) > 0 {
			out = append(out, &Permission{Entity: e, Operations: p[e]})
		}
	}
	return out
}

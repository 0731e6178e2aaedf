package role

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// GrantRoleInput grants a role to a user on a scope; the system has no id.
type GrantRoleInput struct {
	Role    uuid.UUID
	User    uuid.UUID
	Scope   rolegrant.Scope
	ScopeID *uuid.UUID
}

// RevokeRoleInput names the grant to revoke.
type RevokeRoleInput struct{ ID uuid.UUID }

// RoleGrantPayload is a new grant.
type RoleGrantPayload struct{ Grant *ent.RoleGrant }

// RevokeRolePayload is the role of the revoked grant.
type RevokeRolePayload struct{ Role *ent.Role }

// GrantRole grants a role to a user, effective at once. The viewer must be allowed to grant
// the role, and must have all of its permissions on the scope. Granting it again changes
// nothing.
func (s *Service) GrantRole(ctx context.Context, in GrantRoleInput) (*RoleGrantPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if err := rolegrant.ScopeValidator(in.Scope); err != nil {
		return nil, problem.Invalid("scope", "%q is not a scope", in.Scope)
	}
	on := uuid.Nil
	switch {
	case in.Scope == rolegrant.ScopeSystem && in.ScopeID != nil:
		return nil, problem.Invalid("scopeId", "must be empty for the scope system")
	case in.Scope != rolegrant.ScopeSystem && in.ScopeID == nil:
		return nil, problem.Invalid("scopeId", "must be the id of a %s", in.Scope)
	case in.ScopeID != nil:
		on = *in.ScopeID
	}
	var made *ent.RoleGrant
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		r, err := locked(ctx, tx, in.Role, "role")
		if err != nil {
			return err
		}
		if _, err := permit.Check(ctx, access.Grant, access.Role, access.Object{ID: r.ID}); err != nil {
			return err
		}
		if err := holder(ctx, tx, in.User); err != nil {
			return err
		}
		if err := exceeds(ctx, tx, r.Permissions, in.Scope, on); err != nil {
			return err
		}
		made, err = grant(ctx, tx, in, on)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("grant role %s: %w", in.Role, err)
	}
	s.open.Disconnect(ctx, in.User)
	return &RoleGrantPayload{Grant: made.Unwrap()}, nil
}

// grant stores a grant, or returns the equal existing one. A lock on the role excludes
// concurrent requests.
func grant(ctx context.Context, tx *ent.Tx, in GrantRoleInput, on uuid.UUID) (*ent.RoleGrant, error) {
	g, err := tx.RoleGrant.Query().Where(rolegrant.RoleID(in.Role), rolegrant.UserID(in.User),
		rolegrant.ScopeEQ(in.Scope), rolegrant.ScopeID(on)).Only(everywhere(ctx))
	if !ent.IsNotFound(err) {
		return g, err
	}
	return tx.RoleGrant.Create().SetRoleID(in.Role).SetUserID(in.User).SetScope(in.Scope).SetScopeID(on).Save(ctx)
}

// RevokeRole revokes a grant, effective at once.
func (s *Service) RevokeRole(ctx context.Context, in RevokeRoleInput) (*RevokeRolePayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	g, err := s.client.RoleGrant.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "grant", "id")
	}
	r, err := s.client.Role.Get(ctx, g.RoleID)
	if err != nil {
		return nil, permit.Missing(err, "grant", "id")
	}
	if _, err := permit.Check(ctx, access.Grant, access.Role, access.Object{ID: r.ID}); err != nil {
		return nil, err
	}
	if err := s.client.RoleGrant.DeleteOne(g).Exec(ctx); err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("revoke role: %w", err)
	}
	s.open.Disconnect(ctx, g.UserID)
	return &RevokeRolePayload{Role: r}, nil
}

func holder(ctx context.Context, tx *ent.Tx, id uuid.UUID) error {
	u, err := tx.User.Get(ctx, id)
	if err != nil {
		return permit.Missing(err, "user", "user")
	}
	if u.Status == user.StatusDeleted {
		return problem.Precondition("the user is deleted").WithField("user")
	}
	return nil
}

// exceeds returns an error for permissions that the viewer does not have on a scope, and for a
// scope that does not exist or that the viewer cannot see.
func exceeds(ctx context.Context, tx *ent.Tx, allows access.Permissions, scope rolegrant.Scope, on uuid.UUID) error {
	v := viewer.From(ctx)
	if v.Within != uuid.Nil && (scope != rolegrant.ScopeProject || on != v.Within) {
		return problem.Forbidden("the access token is limited to one project").WithField("scopeId")
	}
	if scope == rolegrant.ScopeObject {
		return exceedsOn(ctx, tx, allows, on)
	}
	where, own := access.Object{}, access.Entity("")
	switch scope {
	case rolegrant.ScopeDomain:
		if _, err := scoped(tx.Domain.Get(ctx, on)); err != nil {
			return err
		}
		where, own = access.Object{Domain: on}, access.Domain
	case rolegrant.ScopeProject:
		p, err := scoped(tx.Project.Get(ctx, on))
		if err != nil {
			return err
		}
		where, own = access.Object{Domain: p.DomainID, Project: on}, access.Project
	}
	for e, list := range allows {
		at := where
		if e == own { // the scope itself; a grant on this one object does not cover the objects in it
			at.ID = on
		}
		if err := has(v, e, list, at); err != nil {
			return err
		}
	}
	return nil
}

// exceedsOn is exceeds for one object. Only the role's permissions for objects of this kind count.
func exceedsOn(ctx context.Context, tx *ent.Tx, allows access.Permissions, on uuid.UUID) error {
	e, at, err := find(ctx, tx, on)
	if err != nil {
		return err
	}
	if len(allows[e]) == 0 {
		return problem.Invalid("scopeId", "the role has no permission about a %s", e)
	}
	return has(viewer.From(ctx), e, allows[e], at)
}

// has returns an error if the viewer cannot do the operation there. A superadmin can also grant the
// one operation that their own role does not include.
func has(v *viewer.Viewer, e access.Entity, list []access.Operation, at access.Object) error {
	if v.Superadmin() {
		return nil
	}
	for _, op := range list {
		if !v.May(op, e, at) {
			return problem.Forbidden("you cannot grant %q on %s: you do not have it in this scope", op, e).WithField("role")
		}
	}
	return nil
}

func scoped[T any](found T, err error) (T, error) {
	if err != nil {
		return found, permit.Missing(err, "scope", "scopeId")
	}
	return found, nil
}

// tables are the tables of the objects on which roles are granted, by the kind in their ids.
var tables = map[id.Kind]string{
	id.Domain: "domains", id.Project: "projects", id.User: "users", id.Role: "roles", id.ResourcePolicy: "resource_policies",
	id.ResourceGroup: "resource_groups", id.ResourcePreset: "resource_presets", id.Agent: "agents", id.Registry: "registries",
	id.Image: "images", id.Volume: "volumes", id.Session: "sessions", id.Vfolder: "vfolders", id.Task: "tasks",
}

// find reads the object with an id of any of these kinds.
func find(ctx context.Context, tx *ent.Tx, on uuid.UUID) (access.Entity, access.Object, error) {
	table, ok := tables[id.KindOf(on)]
	if !ok {
		return "", access.Object{}, problem.Invalid("scopeId", "is not the id of an object that a role can cover")
	}
	n, err := scoped(tx.Client().Noder(ctx, on, ent.WithFixedNodeType(table)))
	if err != nil {
		return "", access.Object{}, err
	}
	e, at, _ := permit.Of(n)
	return e, at, nil
}

func everywhere(ctx context.Context) context.Context { return viewer.SystemContext(ctx) }

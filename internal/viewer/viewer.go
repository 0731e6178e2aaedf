// Package viewer identifies the user of a request. The edge (HTTP, loops) puts a viewer into the
// context; ent's visibility rules and the manager's services read it. A context without a viewer is
// an error everywhere.
package viewer

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
)

// Role is the built-in role of a user.
type Role string

// The built-in roles; values are those of the User entity.
const (
	RoleUser       Role = "user"
	RoleAdmin      Role = "admin"      // domain admin
	RoleSuperadmin Role = "superadmin" // everything
	RoleMonitor    Role = "monitor"    // reads everything, changes nothing
)

// Viewer is an authenticated user, the system itself, or no one yet.
type Viewer struct {
	User     uuid.UUID
	Email    string
	Domain   uuid.UUID
	Role     Role
	Projects []uuid.UUID // memberships
	Admins   []uuid.UUID // projects in which the user is project admin

	Grants []access.RoleGrant // custom roles
	// Shares are the folders that are shared with the user themselves, and for what.
	Shares map[uuid.UUID]access.FolderPermission

	// Credential is the login session, access token or keypair of the request, which a logout or a
	// revocation ends.
	Credential uuid.UUID
	// Scopes are the scopes of the access token; nil for a person.
	Scopes []access.TokenScope
	// Within is the only project that the token gives access to; zero for all.
	Within uuid.UUID
	// Actor is the user who acts as User; zero otherwise.
	Actor uuid.UUID
	// Due is the action that the user must take before anything else.
	Due Due

	system    bool
	anonymous bool
}

// System returns the viewer of the platform's own loops. It sees everything.
func System() *Viewer { return &Viewer{system: true, Role: RoleSuperadmin} }

// Anonymous returns the viewer of a request without credentials. It sees no row.
func Anonymous() *Viewer { return &Viewer{anonymous: true} }

// IsSystem reports whether the viewer is the platform itself.
func (v *Viewer) IsSystem() bool { return v.system }

// IsAnonymous reports whether no one is logged in.
func (v *Viewer) IsAnonymous() bool { return v.anonymous }

// SeesAll reports whether the viewer is the system, a superadmin or a monitor.
func (v *Viewer) SeesAll() bool {
	return v.system || v.Role == RoleSuperadmin || v.Role == RoleMonitor
}

// Superadmin reports whether the viewer is the system or a superadmin, who can change everything.
func (v *Viewer) Superadmin() bool { return v.system || v.Role == RoleSuperadmin }

// AdminOf reports whether the viewer administers the domain.
func (v *Viewer) AdminOf(domain uuid.UUID) bool {
	return v.Superadmin() || v.Role == RoleAdmin && v.Domain == domain
}

// MemberOf reports whether the viewer belongs to the project.
func (v *Viewer) MemberOf(project uuid.UUID) bool { return slices.Contains(v.Projects, project) }

// ProjectAdminOf reports whether the viewer administers the project itself.
func (v *Viewer) ProjectAdminOf(project uuid.UUID) bool { return slices.Contains(v.Admins, project) }

// Due is an action that a user must take before anything else.
type Due string

// The actions.
const (
	DuePassword Due = "password" // change it
	DueTOTP     Due = "totp"     // enrol a second factor
)

// Allows reports whether the credential includes the scope.
func (v *Viewer) Allows(scope access.TokenScope) bool { return access.TokenAllows(v.Scopes, scope) }

// May reports whether the viewer can do op on an object of an entity.
func (v *Viewer) May(op access.Operation, e access.Entity, on access.Object) bool {
	switch {
	case v.system:
		return true
	case !access.Applies(op, e), v.anonymous, v.Due != "", !v.Allows(access.Needs(op, e)) && !v.ownProfile(op, e, on):
		return false
	case v.Within != uuid.Nil && on.Project != v.Within && on.ID != v.Within && (e == access.Session || e == access.Template || e == access.Vfolder || e == access.Project):
		return false
	case v.Role == RoleSuperadmin && !access.Private(op):
		return true
	case v.Role == RoleMonitor:
		return op == access.Read || e == access.Credential && on.Owner == v.User // their own logins and tokens
	}
	for _, r := range v.relations(on) {
		if access.Builtin(e, r, op) {
			return true
		}
	}
	return slices.ContainsFunc(v.Grants, func(g access.RoleGrant) bool { return g.Covers(op, e, on) })
}

// ownProfile is true for a token of the account scope that changes its user.
func (v *Viewer) ownProfile(op access.Operation, e access.Entity, on access.Object) bool {
	return e == access.User && op == access.Update && on.ID == v.User && v.Allows(access.TokenAccount)
}

func (v *Viewer) relations(on access.Object) []access.Relation {
	list := []access.Relation{access.Anyone}
	if on.Owner != uuid.Nil && on.Owner == v.User {
		list = append(list, access.Owner)
	}
	if v.MemberOf(on.Project) {
		list = append(list, access.Member)
	}
	// A share with one user takes precedence over the permission of all members.
	if own, shared := v.Shares[on.ID]; shared {
		list = append(list, own.Relation())
	} else if v.MemberOf(on.Project) {
		list = append(list, on.Members.Relation())
	}
	if v.ProjectAdminOf(on.Project) {
		list = append(list, access.Lead)
	}
	if on.Domain != uuid.Nil && on.Domain == v.Domain {
		list = append(list, access.Belongs)
		if v.Role == RoleAdmin {
			list = append(list, access.DomainAdmin)
		}
	}
	return list
}

// Permissions returns the operations that the viewer can do on an object.
func (v *Viewer) Permissions(e access.Entity, on access.Object) []access.Operation {
	list := []access.Operation{}
	for _, op := range access.Operations() {
		if v.May(op, e, on) {
			list = append(list, op)
		}
	}
	return list
}

// Granted returns the ids of the scopes of a kind on which custom roles allow
// op on an entity. For the system there is one, all zero.
func (v *Viewer) Granted(op access.Operation, e access.Entity, scope access.Scope) []uuid.UUID {
	var list []uuid.UUID
	for _, g := range v.Grants {
		if g.Scope == scope && slices.Contains(g.Permissions[e], op) {
			list = append(list, g.ID)
		}
	}
	return list
}

type key struct{}

// With returns a context that carries v.
func With(ctx context.Context, v *Viewer) context.Context {
	return context.WithValue(ctx, key{}, v)
}

// From returns the viewer of ctx, or nil when none was set.
func From(ctx context.Context) *Viewer {
	v, _ := ctx.Value(key{}).(*Viewer)
	return v
}

// SystemContext is With(ctx, System()).
func SystemContext(ctx context.Context) context.Context { return With(ctx, System()) }

// Person returns the person behind the request: the actor if they act as another user.
func (v *Viewer) Person() uuid.UUID {
	if v.Actor != uuid.Nil {
		return v.Actor
	}
	return v.User
}

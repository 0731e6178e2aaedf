// Package viewer says who is asking. The edge (HTTP, loops) puts a viewer in
// the context; ent's visibility rules and the manager's services read it.
// A context without one is an error everywhere, never a leak.
package viewer

import (
	"context"
	"slices"

	"github.com/google/uuid"
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

// Viewer is an authenticated user, the system itself, or nobody yet.
type Viewer struct {
	User     uuid.UUID
	Email    string
	Domain   uuid.UUID
	Role     Role
	Projects []uuid.UUID // memberships
	Admins   []uuid.UUID // projects in which the user is project admin

	// Credential is the login session or access token that was shown; it is
	// what a logout or revocation ends.
	Credential uuid.UUID

	system    bool
	anonymous bool
}

// System returns the viewer of the platform's own loops. It sees everything.
func System() *Viewer { return &Viewer{system: true, Role: RoleSuperadmin} }

// Anonymous returns the viewer of a request without credentials. It sees no row.
func Anonymous() *Viewer { return &Viewer{anonymous: true} }

// IsSystem tells the platform itself from people.
func (v *Viewer) IsSystem() bool { return v.system }

// IsAnonymous tells whether nobody is logged in.
func (v *Viewer) IsAnonymous() bool { return v.anonymous }

// SeesAll is true for the system, superadmins and monitors.
func (v *Viewer) SeesAll() bool {
	return v.system || v.Role == RoleSuperadmin || v.Role == RoleMonitor
}

// Superadmin is true for the system and superadmins, who may change everything.
func (v *Viewer) Superadmin() bool { return v.system || v.Role == RoleSuperadmin }

// AdminOf tells whether the viewer administers the domain.
func (v *Viewer) AdminOf(domain uuid.UUID) bool {
	return v.Superadmin() || v.Role == RoleAdmin && v.Domain == domain
}

// MemberOf tells whether the viewer belongs to the project.
func (v *Viewer) MemberOf(project uuid.UUID) bool { return slices.Contains(v.Projects, project) }

// ProjectAdminOf tells whether the viewer administers the project itself.
func (v *Viewer) ProjectAdminOf(project uuid.UUID) bool { return slices.Contains(v.Admins, project) }

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

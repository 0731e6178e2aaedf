package role_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/role"
)

// cut records the users whose connections were closed.
type cut struct{ ids []uuid.UUID }

func (c *cut) Disconnect(_ context.Context, id uuid.UUID) { c.ids = append(c.ids, id) }

type world struct {
	*identitytest.World
	*role.Service
	*cut
}

func start(t *testing.T) world {
	w, c := identitytest.New(t), &cut{}
	return world{w, role.New(role.Config{Client: w.Client, Open: c}), c}
}

// as returns a context with u as the viewer, with their current custom roles.
func (w world) as(t *testing.T, u *ent.User) context.Context {
	t.Helper()
	v := w.Viewer(t, u)
	system := viewer.SystemContext(t.Context())
	for _, g := range w.Client.RoleGrant.Query().Where(rolegrant.UserID(u.ID)).WithRole().AllX(system) {
		v.Grants = append(v.Grants, access.RoleGrant{Scope: access.Scope(g.Scope), ID: g.ScopeID, Permissions: g.Edges.Role.Permissions})
	}
	return viewer.With(t.Context(), v)
}

func (w world) role(t *testing.T, name string, allows ...role.Permission) *ent.Role {
	t.Helper()
	out, err := w.CreateRole(w.as(t, w.Superadmin), role.CreateRoleInput{Name: name, Allows: allows})
	if err != nil {
		t.Fatal(err)
	}
	return out.Role
}

func (w world) grant(t *testing.T, r *ent.Role, to *ent.User, scope rolegrant.Scope, on uuid.UUID) *ent.RoleGrant {
	t.Helper()
	in := role.GrantRoleInput{Role: r.ID, User: to.ID, Scope: scope}
	if on != uuid.Nil {
		in.ScopeID = &on
	}
	out, err := w.GrantRole(w.as(t, w.Superadmin), in)
	if err != nil {
		t.Fatal(err)
	}
	return out.Grant
}

func want(t *testing.T, what string, err error, code, field string) {
	t.Helper()
	if err == nil && code == "" {
		return
	}
	if p, _ := problem.From(err); p.Code != code || field != "" && p.Field != field {
		t.Errorf("%s: got %s field %q (%v), want %s field %q", what, p.Code, p.Field, err, code, field)
	}
}

func on(e access.Entity, ops ...access.Operation) role.Permission {
	return role.Permission{Entity: e, Operations: ops}
}

func TestRolesAreChecked(t *testing.T) {
	w := start(t)
	w.role(t, "taken")
	for _, c := range []struct {
		name        string
		as          *ent.User
		in          role.CreateRoleInput
		code, field string
	}{
		{"by a member", w.A.Member, role.CreateRoleInput{Name: "x"}, problem.CodePermissionDenied, ""},
		{"by a domain admin", w.A.Admin, role.CreateRoleInput{Name: "x"}, problem.CodePermissionDenied, ""},
		{"by a monitor", w.Monitor, role.CreateRoleInput{Name: "x"}, problem.CodePermissionDenied, ""},
		{"without a name", w.Superadmin, role.CreateRoleInput{}, problem.CodeInvalidArgument, "name"},
		{"taken", w.Superadmin, role.CreateRoleInput{Name: "taken"}, problem.CodeAlreadyExists, "name"},
		{"unknown entity", w.Superadmin, role.CreateRoleInput{Name: "x", Allows: []role.Permission{on("moon", access.Read)}}, problem.CodeInvalidArgument, "allows[0].entity"},
		{"unknown operation", w.Superadmin, role.CreateRoleInput{Name: "x", Allows: []role.Permission{on(access.User, "eat")}}, problem.CodeInvalidArgument, "allows[0].operations"},
		{"entity twice", w.Superadmin, role.CreateRoleInput{Name: "x", Allows: []role.Permission{on(access.User, access.Read), on(access.User, access.Read)}}, problem.CodeInvalidArgument, "allows[1].entity"},
		{"all right", w.Superadmin, role.CreateRoleInput{Name: "x", Allows: []role.Permission{on(access.User, access.Update, access.Read, access.Read)}}, "", ""},
	} {
		out, err := w.CreateRole(w.as(t, c.as), c.in)
		want(t, c.name, err, c.code, c.field)
		if err == nil {
			if d := cmp.Diff(access.Permissions{access.User: {access.Read, access.Update}}, out.Role.Permissions); d != "" {
				t.Errorf("permissions (-want +got)\n%s", d)
			}
		}
	}
}

func TestScopesOfGrants(t *testing.T) {
	w := start(t)
	r := w.role(t, "operator", on(access.Project, access.Read, access.Update))
	none, system := uuid.New(), viewer.SystemContext(t.Context())
	for _, c := range []struct {
		name        string
		scope       rolegrant.Scope
		id          *uuid.UUID
		code, field string
	}{
		{"no scope", "moon", nil, problem.CodeInvalidArgument, "scope"},
		{"a system with an id", "system", &w.A.ID, problem.CodeInvalidArgument, "scopeId"},
		{"a domain without an id", "domain", nil, problem.CodeInvalidArgument, "scopeId"},
		{"a project as a domain", "domain", &w.A.Project.ID, problem.CodeNotFound, "scopeId"},
		{"a domain as a project", "project", &w.A.ID, problem.CodeNotFound, "scopeId"},
		{"an unknown id", "object", &none, problem.CodeNotFound, "scopeId"},
		{"an object without permissions in the role", "object", &w.A.Member.ID, problem.CodeInvalidArgument, "scopeId"},
		{"the system", "system", nil, "", ""},
		{"a domain", "domain", &w.A.ID, "", ""},
		{"a project", "project", &w.A.Project.ID, "", ""},
		{"an object", "object", &w.A.Project.ID, "", ""},
	} {
		in := role.GrantRoleInput{Role: r.ID, User: w.B.Loner.ID, Scope: c.scope, ScopeID: c.id}
		code := c.code
		if c.name == "an unknown id" { // a random id can be of any kind
			if _, err := w.GrantRole(w.as(t, w.Superadmin), in); err == nil {
				t.Error("a random id is accepted")
			}
			continue
		}
		_, err := w.GrantRole(w.as(t, w.Superadmin), in)
		want(t, c.name, err, code, c.field)
		if err == nil && !slices.Contains(w.ids, w.B.Loner.ID) {
			t.Errorf("%s: open connections continue", c.name)
		}
	}
	if n := w.Client.RoleGrant.Query().CountX(system); n != 4 {
		t.Errorf("%d grants", n)
	}
	w.ids = nil
	w.grant(t, r, w.B.Loner, "system", uuid.Nil) // again
	if n := w.Client.RoleGrant.Query().CountX(system); n != 4 {
		t.Errorf("%d grants after a repetition", n)
	}
	if _, err := w.DeleteRole(w.as(t, w.Superadmin), role.DeleteRoleInput{ID: r.ID}); err != nil {
		t.Fatal(err)
	}
	if n := w.Client.RoleGrant.Query().CountX(system); n != 0 {
		t.Errorf("%d grants of no role", n)
	}
}

// A user cannot grant permissions that they lack on the scope, neither with a new grant nor by
// changing a granted role.
func TestNobodyGrantsMoreThanHeHas(t *testing.T) {
	w := start(t)
	hands := w.role(t, "hands out", on(access.Role, access.Read, access.Update, access.Grant), on(access.User, access.Read))
	sessions := w.role(t, "sessions", on(access.Session, access.Read, access.Delete))
	w.grant(t, hands, w.A.Lead, "system", uuid.Nil)
	try := func(to rolegrant.Scope, id *uuid.UUID) error {
		_, err := w.GrantRole(w.as(t, w.A.Lead), role.GrantRoleInput{Role: sessions.ID, User: w.A.Loner.ID, Scope: to, ScopeID: id})
		return err
	}
	want(t, "on the system", try("system", nil), problem.CodePermissionDenied, "role")
	want(t, "on the viewer's domain", try("domain", &w.A.ID), problem.CodePermissionDenied, "role")
	want(t, "on another project", try("project", &w.B.Project.ID), problem.CodeNotFound, "scopeId")
	want(t, "on the project that they lead", try("project", &w.A.Project.ID), "", "")
	more := []role.Permission{on(access.Session, access.Read, access.Delete, access.Enter)}
	_, err := w.UpdateRole(w.as(t, w.A.Lead), role.UpdateRoleInput{ID: sessions.ID, Allows: more})
	want(t, "a granted role with more permissions", err, problem.CodePermissionDenied, "role")
	less := []role.Permission{on(access.Session, access.Read)}
	w.ids = nil
	_, err = w.UpdateRole(w.as(t, w.A.Lead), role.UpdateRoleInput{ID: sessions.ID, Allows: less})
	want(t, "made smaller", err, "", "")
	if !slices.Contains(w.ids, w.A.Loner.ID) {
		t.Error("its holder is not disconnected")
	}
	_, err = w.UpdateRole(w.as(t, w.A.Lead), role.UpdateRoleInput{ID: hands.ID, Allows: []role.Permission{on(access.Domain, access.OperationsOn(access.Domain)...)}})
	want(t, "one's own role", err, problem.CodePermissionDenied, "role")
	_, err = w.GrantRole(w.as(t, w.A.Loner), role.GrantRoleInput{Role: sessions.ID, User: w.A.Loner.ID, Scope: "project", ScopeID: &w.A.Project.ID})
	want(t, "by a user who only has it", err, problem.CodePermissionDenied, "")
	_, err = w.GrantRole(w.as(t, w.A.Member), role.GrantRoleInput{Role: sessions.ID, User: w.A.Member.ID, Scope: "system"})
	want(t, "by a user who cannot see it", err, problem.CodeNotFound, "role")
}

// A grant makes rows visible at once, and its revocation hides them at once.
func TestGrantsTakeEffect(t *testing.T) {
	w := start(t)
	r := w.role(t, "reader", on(access.User, access.Read))
	sees := func() bool {
		_, err := w.Client.User.Get(w.as(t, w.A.Loner), w.B.Member.ID)
		return err == nil
	}
	if sees() {
		t.Fatal("a user of another domain is visible")
	}
	g := w.grant(t, r, w.A.Loner, "domain", w.B.ID)
	if !sees() {
		t.Error("the grant opens nothing")
	}
	_, err := w.RevokeRole(w.as(t, w.A.Loner), role.RevokeRoleInput{ID: g.ID})
	want(t, "revoked by its holder", err, problem.CodePermissionDenied, "")
	_, err = w.RevokeRole(w.as(t, w.B.Admin), role.RevokeRoleInput{ID: g.ID})
	want(t, "revoked by a user who cannot see it", err, problem.CodeNotFound, "id")
	if _, err := w.RevokeRole(w.as(t, w.Superadmin), role.RevokeRoleInput{ID: g.ID}); err != nil {
		t.Fatal(err)
	}
	if sees() {
		t.Error("the revoked grant is still in effect")
	}
}

// The permissions that the API shows on users equal those that mutations enforce.
func TestPermissionsOfUsers(t *testing.T) {
	w := start(t)
	support := w.role(t, "support", on(access.User, access.Read, access.Update))
	w.grant(t, support, w.A.Loner, "domain", w.A.ID)
	for _, c := range []struct {
		name       string
		as, target *ent.User
		want       []access.Operation
	}{
		{"oneself", w.A.Member, w.A.Member, []access.Operation{access.Read, access.Update}},
		{"a fellow", w.A.Member, w.A.Lead, []access.Operation{access.Read}},
		{"a member by their lead", w.A.Lead, w.A.Member, []access.Operation{access.Read}},
		{"by the domain admin", w.A.Admin, w.A.Member, []access.Operation{access.Read, access.Create, access.Update, access.Delete}},
		{"a superadmin by the domain admin", w.A.Admin, w.Superadmin, []access.Operation{access.Read}},
		{"by a monitor", w.Monitor, w.A.Member, []access.Operation{access.Read}},
		{"by a superadmin", w.Superadmin, w.A.Member, []access.Operation{access.Read, access.Create, access.Update, access.Delete, access.Impersonate}},
		{"by a custom role", w.A.Loner, w.A.Member, []access.Operation{access.Read, access.Update}},
		{"a superadmin by a custom role", w.A.Loner, w.Superadmin, []access.Operation{access.Read}},
	} {
		if d := cmp.Diff(c.want, permit.Permissions(viewer.From(w.as(t, c.as)), c.target)); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
	}
}

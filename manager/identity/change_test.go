package identity_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

func ptr[T any](v T) *T { return &v }

func TestUpdateDomain(t *testing.T) {
	w := identitytest.New(t)
	s, open := service(w.Client)
	system := viewer.SystemContext(t.Context())
	reg := w.Client.Registry.Create().SetName("hub").SetHost("hub").SaveX(system).ID
	for _, c := range []struct {
		name        string
		as          *ent.User
		id          uuid.UUID
		in          identity.UpdateDomainInput
		code, field string
	}{
		{"by its admin", w.A.Admin, w.A.ID, identity.UpdateDomainInput{Name: ptr("x")}, problem.CodePermissionDenied, ""},
		{"by another's admin", w.B.Admin, w.A.ID, identity.UpdateDomainInput{Name: ptr("x")}, problem.CodeNotFound, "id"},
		{"by a monitor", w.Monitor, w.A.ID, identity.UpdateDomainInput{Name: ptr("x")}, problem.CodePermissionDenied, ""},
		{"a short minimum", w.Superadmin, w.B.ID, identity.UpdateDomainInput{PasswordMinLength: ptr(7)}, problem.CodeInvalidArgument, "passwordMinLength"},
		{"a long minimum", w.Superadmin, w.B.ID, identity.UpdateDomainInput{PasswordMinLength: ptr(129)}, problem.CodeInvalidArgument, "passwordMinLength"},
		{"a negative age", w.Superadmin, w.B.ID, identity.UpdateDomainInput{PasswordMaxAgeDays: ptr(-1)}, problem.CodeInvalidArgument, "passwordMaxAgeDays"},
		{"an unknown registry", w.Superadmin, w.B.ID, identity.UpdateDomainInput{Registries: []uuid.UUID{uuid.New()}}, problem.CodeNotFound, "registries"},
		{"a taken name", w.Superadmin, w.B.ID, identity.UpdateDomainInput{Name: ptr("a")}, problem.CodeAlreadyExists, "name"},
		{"deactivating one's own", w.Superadmin, w.A.ID, identity.UpdateDomainInput{Active: ptr(false)}, problem.CodeFailedPrecondition, "active"},
		{"all right", w.Superadmin, w.B.ID, identity.UpdateDomainInput{Name: ptr("bee"), Active: ptr(false), RegistriesRestricted: ptr(true),
			Registries: []uuid.UUID{reg, reg}, TOTPRequired: ptr(true), PasswordMinLength: ptr(128), PasswordMaxAgeDays: ptr(90)}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.ID = c.id
			_, err := s.UpdateDomain(w.As(t, c.as), c.in)
			want(t, err, c.code, c.field)
		})
	}
	d := w.Client.Domain.GetX(system, w.B.ID)
	if d.Name != "bee" || d.Active || !d.RegistriesRestricted || !d.TotpRequired || d.PasswordMinLength != 128 || d.PasswordMaxAgeDays != 90 {
		t.Errorf("domain is %v", d)
	}
	if got := d.QueryRegistries().IDsX(system); !slices.Equal(got, []uuid.UUID{reg}) {
		t.Errorf("registries %v", got)
	}
	if !slices.Contains(open.ids, w.B.Member.ID) || slices.Contains(open.ids, w.A.Member.ID) {
		t.Error("the wrong people were cut off", open.ids)
	}
}

// A user who can change another domain cannot deactivate the domain of the last superadmin.
func TestDomainOfTheLastSuperadminStays(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	_, err := s.UpdateDomain(viewer.SystemContext(t.Context()), identity.UpdateDomainInput{ID: w.A.ID, Active: ptr(false)})
	want(t, err, problem.CodeFailedPrecondition, "active")
}

// Two superadmins of two domains cannot deactivate each other.
func TestSuperadminsOfTwoDomains(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	system := viewer.SystemContext(t.Context())
	for range 8 {
		w.Client.Domain.Update().SetActive(true).ExecX(system)
		w.Client.User.UpdateOneID(w.B.Loner.ID).SetRole(user.RoleSuperadmin).ExecX(system)
		w.Client.User.UpdateOneID(w.Superadmin.ID).SetStatus(user.StatusActive).ExecX(system)
		one, other := w.As(t, w.Superadmin), w.As(t, w.B.Loner)
		var wg sync.WaitGroup
		wg.Go(func() { s.UpdateDomain(one, identity.UpdateDomainInput{ID: w.B.ID, Active: ptr(false)}) })
		wg.Go(func() {
			s.UpdateUser(other, identity.UpdateUserInput{ID: w.Superadmin.ID, Status: ptr(user.StatusDeleted)})
		})
		wg.Wait()
		left := 0
		for _, u := range w.Client.User.Query().Where(user.RoleEQ(user.RoleSuperadmin), user.StatusEQ(user.StatusActive)).WithDomain().AllX(system) {
			if u.Edges.Domain.Active {
				left++
			}
		}
		if left != 1 {
			t.Fatalf("%d superadmins can log in, want 1", left)
		}
	}
}

func TestPurgeDomainAndProject(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	system := viewer.SystemContext(t.Context())
	root := w.As(t, w.Superadmin)
	_, err := s.DeleteDomain(root, identity.DeleteDomainInput{ID: w.B.ID, Name: "a"})
	want(t, err, problem.CodeInvalidArgument, "name")
	_, err = s.DeleteDomain(root, identity.DeleteDomainInput{ID: w.B.ID, Name: "b"})
	want(t, err, problem.CodeFailedPrecondition, "")
	if p, _ := problem.From(err); !strings.Contains(p.Message, "4 users and 1 project") {
		t.Error("the message has no counts:", p.Message)
	}
	_, err = s.DeleteDomain(root, identity.DeleteDomainInput{ID: w.A.ID, Name: "a"})
	want(t, err, problem.CodeFailedPrecondition, "")
	_, err = s.DeleteProject(w.As(t, w.B.Lead), identity.DeleteProjectInput{ID: w.B.Project.ID, Name: "project"})
	want(t, err, problem.CodePermissionDenied, "")
	_, err = s.DeleteProject(w.As(t, w.A.Admin), identity.DeleteProjectInput{ID: w.B.Project.ID, Name: "project"})
	want(t, err, problem.CodeNotFound, "id")
	w.Client.SessionGroup.Create().SetName("apart").SetPlacement("spread").SetDomainID(w.B.ID).SetProject(w.B.Project).SetOwner(w.B.Lead).ExecX(system)
	served := serve(t, w, &w.B, w.B.Lead)
	_, err = s.DeleteProject(w.As(t, w.B.Admin), identity.DeleteProjectInput{ID: w.B.Project.ID, Name: "project"})
	want(t, err, problem.CodeFailedPrecondition, "")
	if p, _ := problem.From(err); !strings.Contains(p.Message, "1 deployment, served among them") {
		t.Error("the message does not name the deployment:", p.Message)
	}
	served.Update().SetEndedAt(time.Now()).ExecX(system)
	w.Client.ImageBuild.Create().SetDomainID(w.B.ID).SetProject(w.B.Project).SetOwner(w.B.Lead).SetRepository("users/u/i").SetTag("1").SetName("i:1").
		SetKind("recipe").SetDockerfile("FROM i").SetDigest("-").SetBase("i").ExecX(system)
	if _, err = s.DeleteProject(w.As(t, w.B.Admin), identity.DeleteProjectInput{ID: w.B.Project.ID, Name: "project"}); err != nil {
		t.Fatal(err)
	}
	if n := w.Client.Membership.Query().Where(membership.ProjectID(w.B.Project.ID)).CountX(system); n != 0 {
		t.Errorf("%d memberships are left", n)
	}
	w.Client.User.Delete().Where(user.DomainID(w.B.ID)).ExecX(system)
	if _, err := s.DeleteDomain(root, identity.DeleteDomainInput{ID: w.B.ID, Name: "b"}); err != nil {
		t.Error("an empty domain stays:", err)
	}
}

func TestUpdateProject(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	for _, c := range []struct {
		name string
		as   *ent.User
		in   identity.UpdateProjectInput
		code string
	}{
		{"by a member", w.A.Member, identity.UpdateProjectInput{Name: ptr("x")}, problem.CodePermissionDenied},
		{"by another's lead", w.B.Lead, identity.UpdateProjectInput{Name: ptr("x")}, problem.CodeNotFound},
		{"by its lead", w.A.Lead, identity.UpdateProjectInput{Name: ptr("vision"), Description: ptr("images")}, ""},
		{"off by its lead", w.A.Lead, identity.UpdateProjectInput{Active: ptr(false)}, problem.CodePermissionDenied},
		{"off by the domain admin", w.A.Admin, identity.UpdateProjectInput{Active: ptr(false)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.ID = w.A.Project.ID
			_, err := s.UpdateProject(w.As(t, c.as), c.in)
			want(t, err, c.code, "")
		})
	}
	made, err := s.CreateProject(w.As(t, w.A.Admin), identity.CreateProjectInput{Name: "models", Domain: w.A.ID, Type: ptr(project.TypeModelStore)})
	if err != nil || made.Project.Type != project.TypeModelStore {
		t.Error(made, err)
	}
}

// A user cannot raise their own role, and the last superadmin cannot be removed.
func TestNobodyRaisesHimself(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	policy := w.Client.ResourcePolicy.Create().SetName("p").SaveX(viewer.SystemContext(t.Context())).ID
	for field, in := range map[string]identity.UpdateUserInput{
		"role": {Role: ptr(user.RoleAdmin)}, "status": {Status: ptr(user.StatusInactive)}, "policy": {Policy: &policy},
		"username": {Username: ptr("other")}, "containerUid": {ContainerUID: ptr(1)}, "containerGid": {ContainerGID: ptr(1)},
		"containerGids": {ContainerGIDs: []int{1}}, "passwordChangeRequired": {PasswordChangeRequired: ptr(false)},
	} {
		in.ID = w.A.Member.ID
		_, err := s.UpdateUser(w.As(t, w.A.Member), in)
		want(t, err, problem.CodePermissionDenied, field)
	}
	for _, in := range []identity.UpdateUserInput{{Status: ptr(user.StatusDeleted)}, {Role: ptr(user.RoleUser)}} {
		in.ID = w.Superadmin.ID
		_, err := s.UpdateUser(w.As(t, w.Superadmin), in)
		want(t, err, problem.CodeFailedPrecondition, "")
	}
}

func TestUpdateUserFields(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	admin := w.As(t, w.A.Admin)
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.0.%d", i)
	}
	for _, c := range []struct {
		field string
		in    identity.UpdateUserInput
	}{
		{"containerUid", identity.UpdateUserInput{ContainerUID: ptr(0)}},
		{"containerGid", identity.UpdateUserInput{ContainerGID: ptr(1 << 31)}},
		{"containerGids", identity.UpdateUserInput{ContainerGIDs: []int{5, -1}}},
		{"username", identity.UpdateUserInput{Username: ptr("a b")}},
		{"allowedAddresses", identity.UpdateUserInput{AllowedAddresses: []string{"10.0.0.0/33"}}},
		{"username", identity.UpdateUserInput{Username: ptr("Deleted-" + w.A.Member.ID.String())}}, // it would hide the user
		{"allowedAddresses", identity.UpdateUserInput{AllowedAddresses: many}},
	} {
		c.in.ID = w.A.Member.ID
		_, err := s.UpdateUser(admin, c.in)
		want(t, err, problem.CodeInvalidArgument, c.field)
	}
	out, err := s.UpdateUser(admin, identity.UpdateUserInput{
		ID: w.A.Member.ID, Username: ptr("Neo"), ContainerUID: ptr(1<<31 - 1), ContainerGID: ptr(1), ContainerGIDs: []int{7},
		AllowedAddresses: []string{"10.1.2.3/8", "10.9.9.9/8", "::ffff:192.0.2.1", "2001:db8::1/32"}, PasswordChangeRequired: ptr(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	u := out.User
	if diff := cmp.Diff([]string{"10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32"}, u.AllowedAddresses); diff != "" {
		t.Error(diff)
	}
	if u.Username != "neo" || *u.ContainerUID != 1<<31-1 || *u.ContainerGid != 1 || !u.PasswordChangeRequired {
		t.Error(u)
	}
	out, err = s.UpdateUser(admin, identity.UpdateUserInput{ID: u.ID, ClearContainer: ptr(true), AllowedAddresses: []string{}, Status: ptr(user.StatusDeleted)})
	if err != nil || out.User.ContainerUID != nil || len(out.User.AllowedAddresses) != 0 {
		t.Error(out, err)
	}
	if _, err = s.UpdateUser(admin, identity.UpdateUserInput{ID: u.ID, Status: ptr(user.StatusActive)}); err != nil {
		t.Error("a deleted user cannot be restored:", err)
	}
}

func TestNobodyLocksHimselfOut(t *testing.T) {
	w := identitytest.New(t)
	s := identity.New(identity.Config{
		Client: w.Client, Passwords: identitytest.Hasher(), Logins: newCut(w.Client), Logger: slog.New(slog.DiscardHandler),
		Address: func(context.Context) netip.Addr { return netip.MustParseAddr("192.0.2.7") },
	})
	elsewhere := []string{"10.0.0.0/8"}
	_, err := s.UpdateProfile(w.As(t, w.A.Member), identity.UpdateProfileInput{AllowedAddresses: elsewhere})
	want(t, err, problem.CodeFailedPrecondition, "allowedAddresses")
	_, err = s.UpdateProfile(w.As(t, w.A.Member), identity.UpdateProfileInput{FullName: ptr("Me"), AllowedAddresses: append(elsewhere, "192.0.2.0/24")})
	want(t, err, "", "")
	_, err = s.UpdateUser(w.As(t, w.A.Admin), identity.UpdateUserInput{ID: w.A.Member.ID, AllowedAddresses: elsewhere})
	want(t, err, "", "")
}

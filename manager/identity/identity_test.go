package identity_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// cut ends logins, and records whose connections were closed.
type cut struct {
	*auth.Service
	sync.Mutex
	ids []uuid.UUID
}

// ring is the key ring of all tests. Its file is only needed to create it.
var ring = sync.OnceValue(func() *seal.Ring {
	dir, err := os.MkdirTemp("", "ring")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	keys, err := seal.Load(dir)
	if err != nil {
		panic(err)
	}
	return keys
})

func newCut(client *ent.Client) *cut {
	log := slog.New(slog.DiscardHandler)
	return &cut{Service: auth.New(auth.Config{Client: client, Keys: ring(), Bus: event.New(nil, log), Passwords: identitytest.Hasher(), Logger: log})}
}

func (c *cut) Disconnect(_ context.Context, id uuid.UUID) {
	c.Lock()
	defer c.Unlock()
	c.ids = append(c.ids, id)
}

func service(client *ent.Client) (*identity.Service, *cut) {
	open := newCut(client)
	return identity.New(identity.Config{
		Client: client, Passwords: identitytest.Hasher(), Logins: open, Logger: slog.New(slog.DiscardHandler),
	}), open
}

// want checks the code and field of an error; "" expects no error.
func want(t *testing.T, err error, code, field string) {
	t.Helper()
	if err == nil && code == "" {
		return
	}
	if err == nil {
		t.Errorf("accepted, want %s", code)
		return
	}
	if p, _ := problem.From(err); p.Code != code || field != "" && p.Field != field {
		t.Errorf("got %s field %q (%v), want %s field %q", p.Code, p.Field, err, code, field)
	}
}

func TestBootstrapOnce(t *testing.T) {
	client := identitytest.Client(t)
	var wg sync.WaitGroup
	passwords := make([]string, 8)
	for i := range passwords {
		wg.Go(func() {
			s, _ := service(client) // as for several managers
			p, created, err := s.Bootstrap(t.Context(), "Root@Example.org")
			if err != nil || created != (p != "") {
				t.Errorf("created %v, password %q, %v", created, p, err)
			}
			passwords[i] = p
		})
	}
	wg.Wait()
	got := slices.DeleteFunc(passwords, func(p string) bool { return p == "" })
	if len(got) != 1 || len(got[0]) != 20 {
		t.Fatalf("passwords %q, want one of 20 characters", got)
	}
	ctx := viewer.SystemContext(t.Context())
	u := client.User.Query().WithDomain().WithMemberships(func(q *ent.MembershipQuery) { q.WithProject() }).OnlyX(ctx)
	if u.Email != "root@example.org" || u.Role != user.RoleSuperadmin || !u.InitialPassword || u.Edges.Domain.Name != "default" ||
		len(u.Edges.Memberships) != 1 || u.Edges.Memberships[0].Edges.Project.Name != "default" {
		t.Errorf("created %v in %v", u, u.Edges)
	}
	if g := client.ResourceGroup.Query().OnlyX(ctx); g.Name != "default" || !g.Public {
		t.Errorf("made %v", g)
	}
	if ok, _, err := identitytest.Hasher().Check(ctx, u.PasswordHash, got[0]); !ok || err != nil {
		t.Error("the password does not fit", err)
	}
}

func TestCreateUser(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	role := func(r user.Role) *user.Role { return &r }
	input := func(change func(*identity.CreateUserInput)) identity.CreateUserInput {
		in := identity.CreateUserInput{
			Email: "New@Example.org", Username: "New", Password: "unlikely phrase", Domain: w.A.ID, Projects: []uuid.UUID{w.A.Project.ID},
		}
		if change != nil {
			change(&in)
		}
		return in
	}
	for _, c := range []struct {
		name        string
		as          *ent.User
		change      func(*identity.CreateUserInput)
		code, field string
	}{
		{"a member", w.A.Member, nil, problem.CodePermissionDenied, ""},
		{"a project admin", w.A.Lead, nil, problem.CodePermissionDenied, ""},
		{"a monitor", w.Monitor, nil, problem.CodePermissionDenied, ""},
		{"the admin of another domain", w.B.Admin, nil, problem.CodeNotFound, "domain"},
		{"a higher role", w.A.Admin, func(in *identity.CreateUserInput) { in.Role = role(user.RoleSuperadmin) }, problem.CodePermissionDenied, "role"},
		{"a monitor created by a domain admin", w.A.Admin, func(in *identity.CreateUserInput) { in.Role = role(user.RoleMonitor) }, problem.CodePermissionDenied, "role"},
		{"no role at all", w.Superadmin, func(in *identity.CreateUserInput) { in.Role = role("god") }, problem.CodeInvalidArgument, "role"},
		{"a short password", w.A.Admin, func(in *identity.CreateUserInput) { in.Password = "123456789" }, problem.CodeInvalidArgument, "password"},
		{"no address", w.A.Admin, func(in *identity.CreateUserInput) { in.Email = "x" }, problem.CodeInvalidArgument, "email"},
		{"letters of two alphabets", w.A.Admin, func(in *identity.CreateUserInput) { in.Email = "u\u0455era1@acme.test" }, problem.CodeInvalidArgument, "email"},
		{"a host of two alphabets", w.A.Admin, func(in *identity.CreateUserInput) { in.Email = "a@\u0430cme.test" }, problem.CodeInvalidArgument, "email"},
		{"an address with a name", w.A.Admin, func(in *identity.CreateUserInput) { in.Email = "Bob <b@example.org>" }, problem.CodeInvalidArgument, "email"},
		{"an address with a header", w.A.Admin, func(in *identity.CreateUserInput) { in.Email = "b@example.org\r\nBcc: x@y" }, problem.CodeInvalidArgument, "email"},
		{"a path as username", w.A.Admin, func(in *identity.CreateUserInput) { in.Username = "../root" }, problem.CodeInvalidArgument, "username"},
		{"a hidden character in the name", w.A.Admin, func(in *identity.CreateUserInput) { n := "a\u202eb"; in.FullName = &n }, problem.CodeInvalidArgument, "fullName"},
		{"the project of another domain", w.A.Admin, func(in *identity.CreateUserInput) { in.Projects = []uuid.UUID{w.B.Project.ID} }, problem.CodeNotFound, "projects"},
		{"the same by a superadmin", w.Superadmin, func(in *identity.CreateUserInput) { in.Projects = []uuid.UUID{w.B.Project.ID} }, problem.CodeNotFound, "projects"},
		{"an unknown policy", w.A.Admin, func(in *identity.CreateUserInput) { id := uuid.New(); in.Policy = &id }, problem.CodeNotFound, "policy"},
		{"all right", w.A.Admin, nil, "", ""},
		{"twice", w.A.Admin, func(in *identity.CreateUserInput) { in.Username = "other" }, problem.CodeAlreadyExists, "email"},
		{"same username", w.A.Admin, func(in *identity.CreateUserInput) { in.Email = "o@example.org" }, problem.CodeAlreadyExists, "username"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := s.CreateUser(w.As(t, c.as), input(c.change))
			want(t, err, c.code, c.field)
			if err != nil {
				return
			}
			u := out.User
			if u.Email != "new@example.org" || u.Username != "new" || u.Role != user.RoleUser || u.DomainID != w.A.ID {
				t.Errorf("made %v", u)
			}
			if n := u.QueryMemberships().CountX(w.As(t, w.Superadmin)); n != 1 {
				t.Errorf("member of %d projects", n)
			}
		})
	}
	unnamed, err := s.CreateUser(w.As(t, w.A.Admin), input(func(in *identity.CreateUserInput) {
		in.Email, in.Username = "_Ann+Lee.2@example.org", ""
	}))
	if err != nil || unnamed.User.Username != "ann-lee.2" {
		t.Errorf("without a username: %v, %v", unnamed, err)
	}
	_, err = s.CreateUser(viewer.With(t.Context(), viewer.Anonymous()), input(nil))
	want(t, err, problem.CodeUnauthenticated, "")
	_, err = s.CreateUser(t.Context(), input(nil))
	want(t, err, problem.CodeUnauthenticated, "")
}

// The rules of the domain apply wherever a password is set.
func TestPasswordsOfTheDomain(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	system := viewer.SystemContext(t.Context())
	for least, words := range map[int]struct{ short, enough string }{
		8:  {"seven77", "eight888"},
		14: {"thirteen char", "fourteen chars"},
	} {
		w.Client.Domain.UpdateOneID(w.A.ID).SetPasswordMinLength(least).ExecX(system)
		name := fmt.Sprint("least-", least)
		create := func(p string) error {
			_, err := s.CreateUser(w.As(t, w.A.Admin), identity.CreateUserInput{Email: name + "@example.org", Password: p, Domain: w.A.ID})
			return err
		}
		want(t, create(words.short), problem.CodeInvalidArgument, "password")
		want(t, create(strings.ToUpper(name)+"@example.org"), problem.CodeInvalidArgument, "password")
		want(t, create("passwordpassword"), problem.CodeInvalidArgument, "password")
		want(t, create(words.enough), "", "")
		out, err := s.ImportUsers(w.As(t, w.A.Admin), identity.ImportUsersInput{Domain: w.A.ID, CSV: fmt.Sprintf(
			"email,password\ns%s@example.org,%s\ne%s@example.org,%s\n", name, words.short, name, words.enough)})
		if err != nil || out.Failed != 1 || out.Created != 1 || *out.Results[0].Field != "password" {
			t.Errorf("import with at least %d characters: %v, %v", least, out, err)
		}
	}
}

func TestUpdateUserDecides(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	policy := w.Client.ResourcePolicy.Create().SetName("big").SaveX(viewer.SystemContext(t.Context())).ID
	full, yes, super, admin, stop := "Somebody Else", true, user.RoleSuperadmin, user.RoleAdmin, user.StatusInactive
	name := identity.UpdateUserInput{FullName: &full}
	for _, c := range []struct {
		name        string
		as, target  *ent.User
		in          identity.UpdateUserInput
		code, field string
	}{
		{"own name", w.A.Member, w.A.Member, name, "", ""},
		{"own role", w.A.Member, w.A.Member, identity.UpdateUserInput{FullName: &full, Role: &super}, problem.CodePermissionDenied, "role"},
		{"own status", w.A.Member, w.A.Member, identity.UpdateUserInput{Status: &stop}, problem.CodePermissionDenied, "status"},
		{"own policy", w.A.Member, w.A.Member, identity.UpdateUserInput{ClearPolicy: &yes}, problem.CodePermissionDenied, "policy"},
		{"own policy by id", w.A.Member, w.A.Member, identity.UpdateUserInput{Policy: &policy}, problem.CodePermissionDenied, "policy"},
		{"a fellow member", w.A.Member, w.A.Lead, name, problem.CodePermissionDenied, ""},
		{"a member by the project admin", w.A.Lead, w.A.Member, name, problem.CodePermissionDenied, ""},
		{"a user that the viewer cannot see", w.A.Member, w.A.Loner, name, problem.CodeNotFound, "id"},
		{"somebody of another domain", w.A.Member, w.B.Member, name, problem.CodeNotFound, "id"},
		{"another domain's user by an admin", w.A.Admin, w.B.Member, name, problem.CodeNotFound, "id"},
		{"a user by the domain admin", w.A.Admin, w.A.Member, identity.UpdateUserInput{FullName: &full, Role: &admin, Policy: &policy}, "", ""},
		{"a superadmin by the domain admin", w.A.Admin, w.Superadmin, name, problem.CodePermissionDenied, ""},
		{"more than one's own role", w.A.Admin, w.A.Loner, identity.UpdateUserInput{Role: &super}, problem.CodePermissionDenied, "role"},
		{"oneself above", w.A.Admin, w.A.Admin, identity.UpdateUserInput{Role: &super}, problem.CodePermissionDenied, "role"},
		{"by a monitor", w.Monitor, w.Monitor, name, problem.CodePermissionDenied, ""},
		{"the last superadmin's role", w.Superadmin, w.Superadmin, identity.UpdateUserInput{Role: &admin}, problem.CodeFailedPrecondition, ""},
		{"the last superadmin's status", w.Superadmin, w.Superadmin, identity.UpdateUserInput{Status: &stop}, problem.CodeFailedPrecondition, ""},
		{"the last superadmin's name", w.Superadmin, w.Superadmin, name, "", ""},
		{"policy set and cleared", w.Superadmin, w.A.Member, identity.UpdateUserInput{Policy: &policy, ClearPolicy: &yes}, problem.CodeInvalidArgument, "clearPolicy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			system := viewer.SystemContext(t.Context())
			before := w.Client.User.GetX(system, c.target.ID)
			c.in.ID = c.target.ID
			_, err := s.UpdateUser(w.As(t, c.as), c.in)
			want(t, err, c.code, c.field)
			after := w.Client.User.GetX(system, c.target.ID)
			if unchanged := after.String() == before.String(); err != nil && !unchanged {
				t.Errorf("refused, but %v became %v", before, after)
			}
		})
	}
}

func TestTwoSuperadminsCannotDemoteEachOther(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	system := viewer.SystemContext(t.Context())
	role := user.RoleUser
	for range 10 {
		w.Client.User.UpdateOneID(w.A.Loner.ID).SetRole(user.RoleSuperadmin).ExecX(system)
		w.Client.User.UpdateOneID(w.Superadmin.ID).SetRole(user.RoleSuperadmin).ExecX(system)
		one, other := w.As(t, w.Superadmin), w.As(t, w.A.Loner)
		var wg sync.WaitGroup
		wg.Go(func() { s.UpdateUser(one, identity.UpdateUserInput{ID: w.A.Loner.ID, Role: &role}) })
		wg.Go(func() { s.UpdateUser(other, identity.UpdateUserInput{ID: w.Superadmin.ID, Role: &role}) })
		wg.Wait()
		if n := w.Client.User.Query().Where(user.RoleEQ(user.RoleSuperadmin)).CountX(system); n != 1 {
			t.Fatalf("%d superadmins are left", n)
		}
	}
}

func TestDeactivationEndsLogins(t *testing.T) {
	w := identitytest.New(t)
	s, open := service(w.Client)
	system := viewer.SystemContext(t.Context())
	login := w.Client.LoginSession.Create().SetHash([]byte("h")).SetExpiresAt(w.A.CreatedAt.AddDate(1, 0, 0)).SetUser(w.A.Member).SaveX(system)
	stop := user.StatusInactive
	if _, err := s.UpdateUser(w.As(t, w.A.Admin), identity.UpdateUserInput{ID: w.A.Member.ID, Status: &stop}); err != nil {
		t.Fatal(err)
	}
	if w.Client.LoginSession.GetX(system, login.ID).RevokedAt == nil {
		t.Error("the login continues")
	}
	line := w.Client.LoginAttempt.Query().Where(loginattempt.UserID(w.A.Member.ID)).OnlyX(system)
	if line.Result != loginattempt.ResultRevoked || *line.LoginID != login.ID {
		t.Errorf("the history has %v", line)
	}
	if !slices.Contains(open.ids, w.A.Member.ID) {
		t.Error("open connections continue")
	}
}

func TestMemberships(t *testing.T) {
	w := identitytest.New(t)
	s, open := service(w.Client)
	yes := true
	for _, c := range []struct {
		name        string
		as          *ent.User
		project     uuid.UUID
		user        *ent.User
		code, field string
	}{
		{"by a member", w.A.Member, w.A.Project.ID, w.A.Loner, problem.CodePermissionDenied, ""},
		{"making oneself an admin", w.A.Member, w.A.Project.ID, w.A.Member, problem.CodePermissionDenied, ""},
		{"by an outsider", w.A.Loner, w.A.Project.ID, w.A.Loner, problem.CodeNotFound, "project"},
		{"by another project's admin", w.B.Lead, w.A.Project.ID, w.B.Lead, problem.CodeNotFound, "project"},
		{"by another domain's admin", w.B.Admin, w.A.Project.ID, w.B.Lead, problem.CodeNotFound, "project"},
		{"by a monitor", w.Monitor, w.A.Project.ID, w.A.Loner, problem.CodePermissionDenied, ""},
		{"somebody of another domain", w.A.Lead, w.A.Project.ID, w.B.Loner, problem.CodeNotFound, "user"},
		{"the same user, by a superadmin", w.Superadmin, w.A.Project.ID, w.B.Loner, problem.CodeNotFound, "user"},
		{"by the project admin", w.A.Lead, w.A.Project.ID, w.A.Loner, "", ""},
		{"by the domain admin", w.A.Admin, w.A.Project.ID, w.A.Admin, "", ""},
	} {
		t.Run("add "+c.name, func(t *testing.T) {
			out, err := s.AddMembership(w.As(t, c.as), identity.AddMembershipInput{Project: c.project, User: c.user.ID, Admin: &yes})
			want(t, err, c.code, c.field)
			if err == nil && out.Project.ID != c.project {
				t.Errorf("payload has %v", out.Project)
			}
		})
	}
	if got := w.Viewer(t, w.A.Loner); !got.ProjectAdminOf(w.A.Project.ID) {
		t.Error("the new member is not an admin")
	}
	if _, err := s.AddMembership(w.As(t, w.A.Lead), identity.AddMembershipInput{Project: w.A.Project.ID, User: w.A.Loner.ID}); err != nil {
		t.Fatal(err)
	}
	if got := w.Viewer(t, w.A.Loner); !got.ProjectAdminOf(w.A.Project.ID) {
		t.Error("repeating it without a word about admin took that away")
	}
	for _, c := range []struct {
		name     string
		as, user *ent.User
		code     string
	}{
		{"another by a member", w.A.Member, w.A.Lead, problem.CodePermissionDenied},
		{"by another domain's admin", w.B.Admin, w.A.Member, problem.CodeNotFound},
		{"oneself", w.A.Member, w.A.Member, ""},
		{"oneself again", w.A.Member, w.A.Member, problem.CodeNotFound},
		{"by the project admin", w.A.Lead, w.A.Loner, ""},
		{"an unknown user", w.A.Lead, w.A.Loner, problem.CodeNotFound},
	} {
		t.Run("remove "+c.name, func(t *testing.T) {
			_, err := s.RemoveMembership(w.As(t, c.as), identity.RemoveMembershipInput{Project: w.A.Project.ID, User: c.user.ID})
			want(t, err, c.code, "")
		})
	}
	if n := w.Client.Membership.Query().Where(membership.ProjectID(w.A.Project.ID)).CountX(viewer.SystemContext(t.Context())); n != 2 {
		t.Errorf("%d members are left, want the project admin and the domain admin", n)
	}
	if !slices.Contains(open.ids, w.A.Member.ID) {
		t.Error("connections of a former member continue")
	}
}

func TestDomainsAndProjects(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	for _, c := range []struct {
		name string
		as   *ent.User
		in   string
		code string
	}{
		{"by a domain admin", w.A.Admin, "new", problem.CodePermissionDenied},
		{"by a monitor", w.Monitor, "new", problem.CodePermissionDenied},
		{"with a bad name", w.Superadmin, "a/b", problem.CodeInvalidArgument},
		{"all right", w.Superadmin, "new", ""},
		{"twice", w.Superadmin, "new", problem.CodeAlreadyExists},
	} {
		t.Run("domain "+c.name, func(t *testing.T) {
			_, err := s.CreateDomain(w.As(t, c.as), identity.CreateDomainInput{Name: c.in})
			want(t, err, c.code, "")
		})
	}
	for _, c := range []struct {
		name   string
		as     *ent.User
		domain uuid.UUID
		code   string
	}{
		{"by a member", w.A.Member, w.A.ID, problem.CodePermissionDenied},
		{"by another domain's admin", w.B.Admin, w.A.ID, problem.CodeNotFound},
		{"by the domain admin", w.A.Admin, w.A.ID, ""},
		{"twice", w.A.Admin, w.A.ID, problem.CodeAlreadyExists},
		{"same name elsewhere", w.B.Admin, w.B.ID, ""},
	} {
		t.Run("project "+c.name, func(t *testing.T) {
			_, err := s.CreateProject(w.As(t, c.as), identity.CreateProjectInput{Name: "vision", Domain: c.domain})
			want(t, err, c.code, "")
		})
	}
}

// Errors of ent are replaced by messages that users can understand.
func TestErrorsOfEntExplainThemselves(t *testing.T) {
	w := identitytest.New(t)
	ctx := w.As(t, w.Superadmin)
	_, missing := w.Client.ResourcePolicy.Get(ctx, uuid.New())
	_, tooLong := w.Client.Domain.Create().SetName(strings.Repeat("a", 65)).Save(ctx)
	_, unset := w.Client.User.Create().SetEmail("x@example.org").SetUsername("x").SetDomainID(w.A.ID).Save(ctx)
	_, used := w.Client.Domain.Delete().Exec(ctx)
	for name, c := range map[string]struct {
		err  error
		want problem.Problem
	}{
		"missing":  {missing, problem.Problem{Code: problem.CodeNotFound, Message: "resource policy not found"}},
		"too long": {tooLong, problem.Problem{Code: problem.CodeInvalidArgument, Message: "value is greater than the required length", Field: "name"}},
		"unset":    {unset, problem.Problem{Code: problem.CodeInvalidArgument, Message: "is missing", Field: "passwordHash"}},
		"used":     {used, problem.Problem{Code: problem.CodeFailedPrecondition, Message: "it is still in use"}},
	} {
		got, _ := problem.From(c.err)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %v: %s", name, c.err, diff)
		}
	}
}

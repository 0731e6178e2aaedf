package identity_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

const people = "\ufeffEmail,username,full_name,role,projects,password,policy\r\n" +
	"One@example.org,one,\"Müller, Öl\",user,project; ,,small\r\n" +
	"two@example.org,,,,,given by hand,\r\n" +
	"one@example.org,uno,,,,,\r\n" +
	"member-a@example.org,,,,,,\r\n" +
	"member-b@example.org,,,,,,\r\n" +
	"three@example.org,member-b,,,,,\r\n" +
	"four@example.org,,,superadmin,,,\r\n" +
	"five@example.org,,,,nowhere,,\r\n" +
	"six@example.org,,,,,short,\r\n" +
	"seven@example.org\r\n" +
	"\"ei\"ght@example.org,,,,,,\r\n" +
	"nine@example.org,,,god,,,none\r\n" +
	"ten@example.org,,,admin,,,\r\n"

func TestImportUsers(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	system := viewer.SystemContext(t.Context())
	w.Client.ResourcePolicy.Create().SetName("small").ExecX(system)
	admin := w.As(t, w.A.Admin)
	before := w.Client.User.Query().CountX(system)
	in := identity.ImportUsersInput{Domain: w.A.ID, CSV: people, DryRun: ptr(true), Passwords: ptr(identity.PasswordsGenerated)}
	expected := func(done identity.ImportStatus) []string {
		return []string{
			"one@example.org " + string(done), "two@example.org " + string(done), "one@example.org failed email",
			"member-a@example.org skipped", "member-b@example.org failed email", "three@example.org failed username",
			"four@example.org failed role", "five@example.org failed projects", "six@example.org failed password",
			"seven@example.org failed csv", " failed csv", "nine@example.org failed role", "ten@example.org " + string(done),
		}
	}
	dry, err := s.ImportUsers(admin, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected(identity.ImportWouldCreate), summary(dry)); diff != "" {
		t.Error(diff)
	}
	if n := w.Client.User.Query().CountX(system); n != before {
		t.Fatalf("a dry run created %d users", n-before)
	}
	in.DryRun = nil
	out, err := s.ImportUsers(admin, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected(identity.ImportCreated), summary(out)); diff != "" {
		t.Error(diff)
	}
	if out.Created != 3 || out.Skipped != 1 || out.Failed != 9 {
		t.Errorf("counts %d %d %d", out.Created, out.Skipped, out.Failed)
	}
	one := w.Client.User.Query().Where(user.Email("one@example.org")).WithPolicies().OnlyX(system)
	if one.FullName != "Müller, Öl" || !one.PasswordChangeRequired || len(one.Edges.Policies) != 1 {
		t.Error(one)
	}
	if ok, stale, err := identitytest.Hasher().Check(system, one.PasswordHash, *out.Results[0].Password); !ok || err != nil {
		t.Error("the generated password does not fit", stale, err)
	}
	if out.Results[1].Password != nil {
		t.Error("a given password was sent back")
	}
	if !w.Client.Membership.Query().Where(membership.UserID(one.ID), membership.ProjectID(w.A.Project.ID)).ExistX(system) {
		t.Error("one is not a member")
	}
	again, err := s.ImportUsers(admin, in)
	if err != nil || again.Created != 0 || again.Results[0].Status != identity.ImportSkipped {
		t.Errorf("importing it again: %v, %v", summary(again), err)
	}
}

func summary(p *identity.ImportUsersPayload) (out []string) {
	for _, r := range p.Results {
		line := r.Email + " " + string(r.Status)
		if r.Field != nil {
			line += " " + *r.Field
		}
		out = append(out, line)
	}
	return out
}

func TestImportRefusesWholeFiles(t *testing.T) {
	w := identitytest.New(t)
	s, _ := service(w.Client)
	for _, c := range []struct{ name, csv, field, wantText string }{
		{"empty", "", "csv", "empty"},
		{"without e-mail", "username\nx\n", "csv", "email"},
		{"an unknown column", "email,shoe_size\n", "csv", "shoe_size"},
		{"a column twice", "email,role,role\n", "csv", "role twice"},
		{"too many rows", "email\n" + strings.Repeat("x\n", 5001), "csv", "too many rows"},
		{"too large", "email\n" + strings.Repeat("x", 1<<20), "csv", "too large"},
		{"not UTF-8", "email\n\xff\n", "csv", "UTF-8"},
	} {
		_, err := s.ImportUsers(w.As(t, w.A.Admin), identity.ImportUsersInput{Domain: w.A.ID, CSV: c.csv})
		want(t, err, problem.CodeInvalidArgument, c.field)
		if p, _ := problem.From(err); !strings.Contains(p.Message, c.wantText) {
			t.Errorf("%s: %q does not say %q", c.name, p.Message, c.wantText)
		}
	}
	ok := identity.ImportUsersInput{Domain: w.A.ID, CSV: "email\n"}
	_, err := s.ImportUsers(w.As(t, w.A.Lead), ok)
	want(t, err, problem.CodePermissionDenied, "")
	_, err = s.ImportUsers(w.As(t, w.B.Admin), ok)
	want(t, err, problem.CodeNotFound, "domain")
	ok.Projects = []uuid.UUID{w.B.Project.ID}
	_, err = s.ImportUsers(w.As(t, w.Superadmin), ok)
	want(t, err, problem.CodeNotFound, "projects")
}

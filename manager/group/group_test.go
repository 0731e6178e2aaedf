package group_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/group"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

func want(t *testing.T, what string, err error, code, field string) {
	t.Helper()
	if err == nil && code == "" {
		return
	}
	if p, _ := problem.From(err); p.Code != code || field != "" && p.Field != field {
		t.Errorf("%s: got %s field %q (%v), want %s field %q", what, p.Code, p.Field, err, code, field)
	}
}

type world struct {
	*identitytest.World
	*group.Service
}

func start(t *testing.T) world {
	w := identitytest.New(t)
	return world{w, group.New(group.Config{Client: w.Client, Bus: event.New(nil, nil)})}
}

func (w world) make(t *testing.T, name string, public bool) *ent.ResourceGroup {
	t.Helper()
	out, err := w.CreateResourceGroup(w.As(t, w.Superadmin), group.CreateResourceGroupInput{Name: name, Public: &public})
	if err != nil {
		t.Fatal(err)
	}
	return out.ResourceGroup
}

// access reads the list page by page, a few entries at a time.
func (w world) access(t *testing.T, ctx context.Context, g, u, p *uuid.UUID) ([]group.Access, error) {
	t.Helper()
	var out []group.Access
	for q := (group.AccessQuestion{Group: g, User: u, Project: p, First: 2}); ; {
		page, err := w.Access(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Edges {
			out = append(out, *e.Node)
		}
		if !page.PageInfo.HasNextPage {
			if len(out) != page.TotalCount {
				t.Errorf("%d are listed and %d counted", len(out), page.TotalCount)
			}
			return out, nil
		}
		q.After = page.PageInfo.EndCursor
	}
}

// sees lists the names of the groups that a user can see.
func (w world) sees(t *testing.T, u *ent.User) []string {
	t.Helper()
	return w.Client.ResourceGroup.Query().Order(resourcegroup.ByName()).Select(resourcegroup.FieldName).StringsX(w.As(t, u))
}

func TestGrantsAreAUnion(t *testing.T) {
	w := start(t)
	root := w.As(t, w.Superadmin)
	g := w.make(t, "gpu", false)
	system := viewer.SystemContext(t.Context())
	key := w.Client.Keypair.Create().SetUser(w.B.Member).SetName("ci").SetAccessKey("AK").SetSecretSealed([]byte("s")).SaveX(system)
	for _, c := range []struct {
		name    string
		in      group.GrantResourceGroupInput
		can     []*ent.User
		via     string
		project *uuid.UUID
	}{
		{"domain", group.GrantResourceGroupInput{Domain: &w.B.ID}, []*ent.User{w.B.Member, w.B.Lead, w.B.Loner, w.B.Admin}, "domain", &w.B.Project.ID},
		{"project", group.GrantResourceGroupInput{Project: &w.A.Project.ID}, []*ent.User{w.A.Member, w.A.Lead}, "project", &w.A.Project.ID},
		{"user", group.GrantResourceGroupInput{User: &w.A.Loner.ID}, []*ent.User{w.A.Loner}, "user", nil},
		{"keypair", group.GrantResourceGroupInput{Keypair: &key.ID}, []*ent.User{w.B.Member}, "keypair", nil},
	} {
		c.in.ResourceGroup = g.ID
		for range 2 { // the second time changes nothing
			if _, err := w.GrantResourceGroup(root, c.in); err != nil {
				t.Fatal(c.name, err)
			}
		}
		if n := w.Client.GroupGrant.Query().CountX(system); n != 1 {
			t.Errorf("%s: %d grants", c.name, n)
		}
		for _, u := range []*ent.User{w.A.Member, w.A.Lead, w.A.Loner, w.A.Admin, w.B.Member, w.B.Lead, w.B.Loner, w.B.Admin} {
			can := slices.ContainsFunc(c.can, func(x *ent.User) bool { return x.ID == u.ID })
			if got := w.sees(t, u); (len(got) == 1) != can {
				t.Errorf("granted to a %s, %s sees %v", c.name, u.Username, got)
			}
			var via []string
			if can {
				via = []string{c.via}
			}
			mine, err := w.access(t, w.As(t, u), nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range mine {
				got = append(got, a.Via...)
			}
			if d := cmp.Diff(via, got); d != "" {
				t.Errorf("granted to a %s, groups of %s (-want +got)\n%s", c.name, u.Username, d)
			}
		}
		all, err := w.access(t, root, &g.ID, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		users, projects := 0, 0
		for _, a := range all {
			if a.User != nil && *a.User != w.Superadmin.ID {
				users++
			}
			if a.Project != nil {
				projects++
				if c.project == nil || *a.Project != *c.project {
					t.Errorf("granted to a %s, project %s may use it", c.name, a.Project)
				}
			}
		}
		if users != len(c.can) || (projects == 1) != (c.project != nil) {
			t.Errorf("granted to a %s, %d users and %d projects are listed", c.name, users, projects)
		}
		if _, err := w.RevokeResourceGroup(root, group.RevokeResourceGroupInput(c.in)); err != nil {
			t.Fatal(c.name, err)
		}
		_, err = w.RevokeResourceGroup(root, group.RevokeResourceGroupInput(c.in))
		want(t, "revoked twice", err, problem.CodeNotFound, "")
	}
	yes := true
	for _, in := range []group.GrantResourceGroupInput{{Domain: &w.B.ID}, {Project: &w.B.Project.ID}, {User: &w.B.Member.ID}, {Keypair: &key.ID}} {
		in.ResourceGroup = g.ID
		if _, err := w.GrantResourceGroup(root, in); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.UpdateResourceGroup(root, group.UpdateResourceGroupInput{ID: g.ID, Public: &yes}); err != nil {
		t.Fatal(err)
	}
	mine, err := w.access(t, w.As(t, w.B.Member), nil, &w.B.Member.ID, nil)
	if d := cmp.Diff([]group.Access{{ResourceGroup: g.ID, User: &w.B.Member.ID, Via: []string{"public", "domain", "project", "user", "keypair"}}}, mine); d != "" || err != nil {
		t.Errorf("all reasons (-want +got)\n%s%v", d, err)
	}
	// The list of users contains only users that the viewer can see.
	seen, err := w.access(t, w.As(t, w.A.Loner), &g.ID, nil, nil)
	if d := cmp.Diff([]group.Access{{ResourceGroup: g.ID, User: &w.A.Loner.ID, Via: []string{"public"}}}, seen); d != "" || err != nil {
		t.Errorf("groups of a loner (-want +got)\n%s%v", d, err)
	}
	_, err = w.access(t, w.As(t, w.A.Loner), nil, &w.B.Member.ID, nil)
	want(t, "another user's groups", err, problem.CodeNotFound, "user")
}

func TestInactiveGroupsVanish(t *testing.T) {
	w := start(t)
	g := w.make(t, "gpu", true)
	no := false
	if got := w.sees(t, w.A.Member); len(got) != 1 {
		t.Fatalf("a member sees %v", got)
	}
	if _, err := w.UpdateResourceGroup(w.As(t, w.Superadmin), group.UpdateResourceGroupInput{ID: g.ID, Active: &no}); err != nil {
		t.Fatal(err)
	}
	if got := w.sees(t, w.A.Member); len(got) != 0 {
		t.Errorf("a member sees %v", got)
	}
	if got, err := w.access(t, w.As(t, w.A.Member), nil, nil, nil); len(got) != 0 || err != nil {
		t.Errorf("a member may use %v, %v", got, err)
	}
	_, err := w.access(t, w.As(t, w.A.Member), &g.ID, nil, nil)
	want(t, "its users", err, problem.CodeNotFound, "resourceGroup")
	if got := w.sees(t, w.Superadmin); len(got) != 1 {
		t.Errorf("a superadmin sees %v", got)
	}
}

func TestWhoChangesGroups(t *testing.T) {
	w := start(t)
	open, shut := w.make(t, "open", true), w.make(t, "shut", false)
	for _, u := range []*ent.User{w.A.Member, w.A.Lead, w.A.Admin, w.Monitor} {
		ctx := w.As(t, u)
		_, err := w.CreateResourceGroup(ctx, group.CreateResourceGroupInput{Name: "mine"})
		want(t, "create", err, problem.CodePermissionDenied, "")
		_, err = w.UpdateResourceGroup(ctx, group.UpdateResourceGroupInput{ID: open.ID})
		want(t, "update", err, problem.CodePermissionDenied, "")
		_, err = w.DeleteResourceGroup(ctx, group.DeleteResourceGroupInput{ID: open.ID})
		want(t, "delete", err, problem.CodePermissionDenied, "")
		_, err = w.GrantResourceGroup(ctx, group.GrantResourceGroupInput{ResourceGroup: open.ID, User: &u.ID})
		want(t, "grant", err, problem.CodePermissionDenied, "")
		if u != w.Monitor {
			_, err = w.GrantResourceGroup(ctx, group.GrantResourceGroupInput{ResourceGroup: shut.ID, User: &u.ID})
			want(t, "invisible grant", err, problem.CodeNotFound, "resourceGroup")
		}
	}
	root := w.As(t, w.Superadmin)
	for _, c := range []struct {
		name  string
		in    group.CreateResourceGroupInput
		code  string
		field string
	}{
		{"taken", group.CreateResourceGroupInput{Name: "open"}, problem.CodeAlreadyExists, "name"},
		{"hidden text", group.CreateResourceGroupInput{Name: "a\u202eb"}, problem.CodeInvalidArgument, "name"},
		{"no types", group.CreateResourceGroupInput{Name: "a", SessionTypes: []string{}}, problem.CodeInvalidArgument, "sessionTypes"},
		{"unknown type", group.CreateResourceGroupInput{Name: "a", SessionTypes: []string{"batch", "training"}}, problem.CodeInvalidArgument, "sessionTypes[1]"},
		{"an IPv6 network", allows("10.0.0.0/8", "fd00::/8"), problem.CodeInvalidArgument, "allowedNetworks[1]"},
		{"a machine's credentials", allows("169.254.169.254"), problem.CodeInvalidArgument, "allowedNetworks[0]"},
		{"a name", allows("registry.local"), problem.CodeInvalidArgument, "allowedNetworks[0]"},
		{"too many networks", allows(make([]string, 65)...), problem.CodeInvalidArgument, "allowedNetworks"},
	} {
		_, err := w.CreateResourceGroup(root, c.in)
		want(t, c.name, err, c.code, c.field)
		if c.name == "unknown type" && !strings.Contains(err.Error(), "interactive, batch") {
			t.Errorf("%s: %v names no allowed type", c.name, err)
		}
	}
	_, err := w.GrantResourceGroup(root, group.GrantResourceGroupInput{ResourceGroup: open.ID, User: &w.A.Member.ID, Domain: &w.A.ID})
	want(t, "two holders", err, problem.CodeInvalidArgument, "")
	_, err = w.GrantResourceGroup(root, group.GrantResourceGroupInput{ResourceGroup: open.ID})
	want(t, "no holder", err, problem.CodeInvalidArgument, "")
	none := uuid.New()
	_, err = w.GrantResourceGroup(root, group.GrantResourceGroupInput{ResourceGroup: open.ID, Project: &none})
	want(t, "a project that is none", err, problem.CodeNotFound, "project")

	system := viewer.SystemContext(t.Context())
	a := w.Client.Agent.Create().SetName("a").SetResourceGroup(open).SetLastSeenAt(time.Now()).SaveX(system)
	_, err = w.DeleteResourceGroup(root, group.DeleteResourceGroupInput{ID: open.ID})
	want(t, "with an agent", err, problem.CodeFailedPrecondition, "id")
	w.Client.Agent.DeleteOne(a).ExecX(system)
	if _, err := w.DeleteResourceGroup(root, group.DeleteResourceGroupInput{ID: open.ID}); err != nil {
		t.Error(err)
	}
}

// A list that is longer than any page is complete, without duplicates and in order; users and
// projects are separate if requested, and filtered by name.
func TestAccessIsPaged(t *testing.T) {
	w := start(t)
	g, system := w.make(t, "gpu", true), viewer.SystemContext(t.Context())
	const many = 1100
	w.Client.User.MapCreateBulk(make([]struct{}, many), func(c *ent.UserCreate, i int) {
		name := fmt.Sprintf("many%04d", i)
		c.SetEmail(name + "@example.org").SetUsername(name).SetFullName(fmt.Sprint("Number ", i)).SetPasswordHash("-").SetDomainID(w.B.ID)
	}).ExecX(system)
	for _, as := range []*ent.User{w.Superadmin, w.B.Admin} {
		ctx, seen, order := w.As(t, as), map[uuid.UUID]bool{}, []string{}
		users, projects, ninth := "user", "project", "NUMBER 9"
		for q := (group.AccessQuestion{Group: &g.ID, Where: group.AccessWhereInput{Holder: &users}, First: 100}); ; {
			page, err := w.Access(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Edges {
				a := e.Node
				if a.Project != nil || seen[*a.User] {
					t.Errorf("%v is a project, or listed twice", a)
				}
				seen[*a.User] = true
				order = append(order, w.Client.User.GetX(system, *a.User).Email)
			}
			if !page.PageInfo.HasNextPage {
				if page.TotalCount != len(seen) {
					t.Errorf("%d counted, %d listed", page.TotalCount, len(seen))
				}
				break
			}
			q.After = page.PageInfo.EndCursor
		}
		if len(seen) < many+4 || !slices.IsSorted(order) {
			t.Errorf("%d users for %s, sorted: %v", len(seen), as.Username, slices.IsSorted(order))
		}
		for _, c := range []struct {
			holder, name *string
			want         int
		}{{&users, &ninth, 111}, {&projects, &ninth, 0}, {nil, &ninth, 111}} {
			page, err := w.Access(ctx, group.AccessQuestion{Group: &g.ID, Where: group.AccessWhereInput{Holder: c.holder, NameContainsFold: c.name}, First: 1})
			if err != nil || page.TotalCount != c.want {
				t.Errorf("%v, %v", page, err)
			}
		}
		if page, err := w.Access(ctx, group.AccessQuestion{Group: &g.ID, Where: group.AccessWhereInput{Holder: &projects}, First: 100}); err != nil || len(page.Edges) == 0 || page.Edges[0].Node.Project == nil {
			t.Errorf("projects: %v, %v", page, err)
		}
	}
	for field, q := range map[string]group.AccessQuestion{
		"first": {First: 101}, "after": {First: 1, After: &ent.Cursor{}}, "resourceGroup": {First: 1, User: &w.A.Member.ID, Project: &w.A.Project.ID},
	} {
		_, err := w.Access(w.As(t, w.Superadmin), q)
		want(t, field, err, problem.CodeInvalidArgument, field)
	}
}

// A group in which something lives, or has lived, is not deleted.
func TestDeleteResourceGroupWithSessions(t *testing.T) {
	w := start(t)
	g, root, system := w.make(t, "gpu", true), w.As(t, w.Superadmin), viewer.SystemContext(t.Context())
	r := w.Client.Registry.Create().SetName("r").SetHost("r").SaveX(system)
	i := w.Client.Image.Create().SetReference("r/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(r).SaveX(system)
	s := w.Client.Session.Create().SetName("s").SetType("batch").SetSlots(nil).SetDomainID(w.A.ID).SetProject(w.A.Project).
		SetOwner(w.A.Member).SetResourceGroup(g).SetImage(i).SaveX(system)
	_, err := w.DeleteResourceGroup(root, group.DeleteResourceGroupInput{ID: g.ID})
	want(t, "with a live session", err, problem.CodeFailedPrecondition, "id")
	s.Update().SetTerminatedAt(time.Now()).ExecX(system)
	_, err = w.DeleteResourceGroup(root, group.DeleteResourceGroupInput{ID: g.ID})
	want(t, "with one that is kept", err, problem.CodeFailedPrecondition, "id")
	w.Client.Session.DeleteOne(s).ExecX(system)
	if _, err := w.DeleteResourceGroup(root, group.DeleteResourceGroupInput{ID: g.ID}); err != nil {
		t.Error(err)
	}
}

// allows creates a group whose sessions can reach some private networks.
func allows(networks ...string) group.CreateResourceGroupInput {
	return group.CreateResourceGroupInput{Name: "inside", Options: group.Options{AllowedNetworks: networks}}
}

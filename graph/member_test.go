package graph_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/managertest"
)

// Members of a project can be filtered by a part of their name, and users by project, but not by a
// project that the viewer cannot see.
func TestMembersAreFiltered(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root, member := m.As(t, w.Superadmin), m.As(t, w.A.Member)
	type users struct {
		TotalCount int
		Edges      []struct {
			Node struct{ ID, Email string }
		}
	}
	of := func(c *managertest.Client, project uuid.UUID) users {
		t.Helper()
		var got struct{ Users users }
		c.Must(t, `query($p: ID!) { users(where: {memberOf: $p}) { totalCount edges { node { id email } } } }`, managertest.Vars{"p": project}, &got)
		return got.Users
	}
	all := w.Client.Membership.Query().CountX(w.System(t))
	inA, inB := of(root, w.A.Project.ID), of(root, w.B.Project.ID)
	if inA.TotalCount == 0 || inB.TotalCount == 0 || inA.TotalCount+inB.TotalCount > all || len(inA.Edges) != inA.TotalCount {
		t.Errorf("of A %+v, of B %+v, of %d memberships", inA, inB, all)
	}
	if own, foreign := of(member, w.A.Project.ID), of(member, w.B.Project.ID); own.TotalCount != inA.TotalCount || foreign.TotalCount != 0 {
		t.Errorf("a member of A sees %d of A and %d of B", own.TotalCount, foreign.TotalCount)
	}
	var got struct {
		Node struct {
			Memberships struct {
				TotalCount int
				Edges      []struct {
					Cursor string
					Node   struct{ User struct{ Email string } }
				}
			}
		}
	}
	const members = `query($p: ID!, $q: String, $after: Cursor) { node(id: $p) { ... on Project {
		memberships(first: 1, after: $after, where: {userContainsFold: $q}, orderBy: [{field: CREATED_AT}]) { totalCount edges { cursor node { user { email } } } } } } }`
	member.Must(t, members, managertest.Vars{"p": w.A.Project.ID, "q": w.A.Lead.Email[1:]}, &got)
	if list := got.Node.Memberships; list.TotalCount != 1 || list.Edges[0].Node.User.Email != w.A.Lead.Email {
		t.Errorf("the lead is found as %+v", list)
	}
	var emails []string
	for after := any(nil); ; {
		got.Node.Memberships.Edges = nil
		member.Must(t, members, managertest.Vars{"p": w.A.Project.ID, "after": after}, &got)
		if len(got.Node.Memberships.Edges) == 0 {
			break
		}
		emails = append(emails, got.Node.Memberships.Edges[0].Node.User.Email)
		after = got.Node.Memberships.Edges[0].Cursor
	}
	if len(emails) != inA.TotalCount {
		t.Errorf("page by page %v, want %d", emails, inA.TotalCount)
	}
}

// A name of several objects is an error until an argument selects one.
func TestNamesOfSeveral(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	root := w.Quiet(t).As(t, w.Superadmin)
	if w.A.Project.Name != w.B.Project.Name {
		t.Fatalf("the projects are %q and %q", w.A.Project.Name, w.B.Project.Name)
	}
	const query = `query($n: String!, $d: ID) { project(name: $n, domain: $d) { id } }`
	errs := root.Ask(t, query, managertest.Vars{"n": w.A.Project.Name}, nil)
	if errs.Code() != problem.CodeFailedPrecondition || errs[0].Extensions.Field != "domain" {
		t.Errorf("without a domain: %s", errs)
	}
	var got struct{ Project struct{ ID uuid.UUID } }
	root.Must(t, query, managertest.Vars{"n": w.A.Project.Name, "d": w.B.ID}, &got)
	if got.Project.ID != w.B.Project.ID {
		t.Errorf("in B it is %s, want %s", got.Project.ID, w.B.Project.ID)
	}
}

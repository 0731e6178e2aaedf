package graph_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/managertest"
)

// A restricted domain cannot use images of some registries. They are visible to viewers who can see
// everything, and in the sessions that were started from them.
func TestImagesOfRestrictedDomain(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	f := &fixture{World: w, t: t, owner: w.A.Member, domain: w.A.Domain, project: w.A.Project}
	open, shut := f.image(), (&fixture{World: w, t: t, n: 1}).image()
	f.n = 2
	session := f.session()
	own := w.Client.Session.GetX(w.System(t), session).ImageID
	w.A.Domain.Update().SetRegistriesRestricted(true).AddRegistryIDs(*open.RegistryID).ExecX(w.System(t))
	for _, c := range []struct {
		as   *ent.User
		want []uuid.UUID
	}{
		{w.A.Member, []uuid.UUID{open.ID}},
		{w.A.Admin, []uuid.UUID{open.ID}},
		{w.B.Member, []uuid.UUID{open.ID, shut.ID, own}},
		{w.Monitor, []uuid.UUID{open.ID, shut.ID, own}},
		{w.Superadmin, []uuid.UUID{open.ID, shut.ID, own}},
	} {
		who := m.As(t, c.as)
		var got struct {
			Images struct {
				TotalCount int
				Edges      []struct{ Node struct{ ID uuid.UUID } }
			}
			Nodes   []*struct{ ID uuid.UUID }
			Session *struct{ Image *struct{ ID uuid.UUID } }
		}
		all := []uuid.UUID{open.ID, shut.ID, own}
		who.Must(t, `query($ids: [ID!]!, $session: ID!) {
  images { totalCount edges { node { id } } }
  nodes(ids: $ids) { id }
  session: node(id: $session) { ... on Session { image { id } } }
}`, managertest.Vars{"ids": all, "session": session}, &got)
		if got.Images.TotalCount != len(c.want) || len(got.Images.Edges) != len(c.want) {
			t.Errorf("%s sees %d images of %d, want %d", c.as.Username, len(got.Images.Edges), got.Images.TotalCount, len(c.want))
		}
		for i, one := range all {
			var node struct{ Node *struct{ ID uuid.UUID } }
			who.Must(t, `query($id: ID!) { node(id: $id) { id } }`, managertest.Vars{"id": one}, &node)
			want := slices.Contains(c.want, one)
			listed := slices.ContainsFunc(got.Images.Edges, func(e struct{ Node struct{ ID uuid.UUID } }) bool { return e.Node.ID == one })
			if listed != want || (got.Nodes[i] != nil) != want || (node.Node != nil) != want {
				t.Errorf("%s and image %d: listed %t, among nodes %t, node %t; want %t", c.as.Username, i, listed, got.Nodes[i] != nil, node.Node != nil, want)
			}
		}
		if seen := got.Session != nil && got.Session.Image != nil; seen != (c.as != w.B.Member) {
			t.Errorf("%s sees the image of the session: %t", c.as.Username, seen)
		}
	}
}

package graph_test

import (
	"slices"
	"testing"
	"time"

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

// The owner finds an own image by its short name, unless an image has this as its whole name. Nobody
// else finds it. A viewer sees the use of an image in the sessions and agents that they can see.
func TestOwnImage(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	f := &fixture{World: w, t: t, owner: w.A.Member, domain: w.A.Domain, project: w.A.Project}
	ctx := w.System(t)
	own := w.Client.Image.Create().SetReference("own.example.org/users/u/tool:1").SetName("users/u/tool:1").SetArchitecture("amd64").
		SetDigest("sha256:1").SetOwnerID(w.A.Member.ID).SetDomainID(w.A.Domain.ID).SetVisibility("private").SaveX(ctx)
	w.Client.Session.Create().SetName("user").SetType("interactive").SetSlots(nil).SetDomainID(w.A.Domain.ID).SetProjectID(w.A.Project.ID).
		SetOwner(w.A.Member).SetResourceGroup(w.Group).SetImage(own).ExecX(ctx)
	agent := func(*ent.AgentCreate) {}
	w.Client.ImageCopy.Create().SetAgentID(f.agent(agent)).SetReference(own.Reference).SetDigest(own.Digest).SetState("present").
		SetUsedAt(time.Unix(1e9, 0)).ExecX(ctx)
	f.n++
	w.Client.ImageCopy.Create().SetAgentID(f.agent(agent)).SetReference(own.Reference).SetDigest("sha256:old").SetState("present").ExecX(ctx)
	type use struct {
		ActiveSessions, Agents int
		LastUsedAt             *time.Time
	}
	find := func(as *ent.User) (id uuid.UUID, u use) {
		var got struct {
			Image *struct {
				ID  uuid.UUID
				Use use
			}
		}
		m.As(t, as).Must(t, `{ image(name: "tool:1") { id use { activeSessions agents lastUsedAt } } }`, nil, &got)
		if got.Image == nil {
			return uuid.Nil, use{}
		}
		return got.Image.ID, got.Image.Use
	}
	if id, u := find(w.A.Member); id != own.ID || u.ActiveSessions != 1 {
		t.Errorf("the owner finds %s with %+v, want %s with 1 session", id, u, own.ID)
	}
	for _, other := range []*ent.User{w.A.Admin, w.B.Member, w.Superadmin} {
		if id, _ := find(other); id != uuid.Nil {
			t.Errorf("%s finds the image of another user by its short name", other.Username)
		}
	}
	var all struct{ Node struct{ Use use } }
	m.As(t, w.Superadmin).Must(t, `query($id: ID!) { node(id: $id) { ... on Image { use { activeSessions agents lastUsedAt } } } }`,
		managertest.Vars{"id": own.ID}, &all)
	if u := all.Node.Use; u.ActiveSessions != 1 || u.Agents != 1 || u.LastUsedAt == nil || u.LastUsedAt.Unix() != 1e9 {
		t.Errorf("the superadmin sees the use %+v, want 1 session and 1 agent", u)
	}
	w.Client.Image.Create().SetReference("hub.example.org/tool:1").SetName("tool:1").SetArchitecture("amd64").SetDigest("sha256:2").
		SetRegistryID(*f.image().RegistryID).ExecX(ctx)
	if id, _ := find(w.A.Member); id == own.ID {
		t.Error("an own image replaces the image with the whole name")
	}
}

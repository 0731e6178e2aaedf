package graph_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/auditentry"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/managertest"
)

// A registry can get another name and other credentials, which no answer contains. It can be
// deleted when no session needs it any longer, and its host is then free again.
func TestRegistriesChange(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	ctx := w.System(t)
	super := m.As(t, w.Superadmin)
	create := `mutation($in: CreateRegistryInput!) { createRegistry(input: $in) { registry { id } } }`
	update := `mutation($in: UpdateRegistryInput!) { updateRegistry(input: $in) { registry { id name host plainHttp } } }`
	remove := `mutation($id: ID!) { deleteRegistry(input: {id: $id}) { id } }`
	var made struct {
		CreateRegistry struct{ Registry struct{ ID uuid.UUID } }
	}
	first := managertest.Vars{"name": "hub", "host": "hub.example.org", "username": "ann", "password": "first secret"}
	super.Must(t, create, managertest.Vars{"in": first}, &made)
	id := made.CreateRegistry.Registry.ID
	before := w.Client.Registry.GetX(ctx, id).PasswordSealed

	var changed struct {
		UpdateRegistry struct {
			Registry struct {
				Name, Host string
				PlainHTTP  bool
			}
		}
	}
	super.Must(t, update, managertest.Vars{"in": managertest.Vars{"id": id, "name": "mirror", "plainHttp": true, "username": "robot", "password": "second secret"}}, &changed)
	if r := changed.UpdateRegistry.Registry; r.Name != "mirror" || r.Host != "hub.example.org" || !r.PlainHTTP {
		t.Errorf("changed to %+v", r)
	}
	row := w.Client.Registry.GetX(ctx, id)
	if row.Username != "robot" || len(row.PasswordSealed) == 0 || bytes.Equal(row.PasswordSealed, before) || bytes.Contains(row.PasswordSealed, []byte("secret")) {
		t.Errorf("user %q, password as it is stored: %q", row.Username, row.PasswordSealed)
	}
	super.Must(t, update, managertest.Vars{"in": managertest.Vars{"id": id, "username": "", "password": ""}}, nil)
	if row = w.Client.Registry.GetX(ctx, id); row.Username != "" || len(row.PasswordSealed) > 0 || row.Name != "mirror" || !row.PlainHTTP {
		t.Errorf("without credentials: %+v", row)
	}
	w.Client.Registry.Create().SetName("other").SetHost("other.example.org").ExecX(ctx)
	for _, bad := range []struct {
		in          managertest.Vars
		code, field string
	}{
		{managertest.Vars{"id": id, "name": "other"}, "ALREADY_EXISTS", "name"},
		{managertest.Vars{"id": id, "name": ""}, "INVALID_ARGUMENT", "name"},
		{managertest.Vars{"id": id, "password": "two\nlines"}, "INVALID_ARGUMENT", "password"},
		{managertest.Vars{"id": uuid.New(), "name": "x"}, "NOT_FOUND", "id"},
	} {
		if errs := super.Ask(t, update, managertest.Vars{"in": bad.in}, nil); errs.Code() != bad.code || errs[0].Extensions.Field != bad.field {
			t.Errorf("%v: %s", bad.in, errs)
		}
	}

	// A session of the first of two images still runs, and no session uses the second.
	f := &fixture{World: w, t: t, owner: w.A.Member, domain: w.A.Domain, project: w.A.Project}
	session := f.session()
	image := w.Client.Session.GetX(ctx, session).ImageID
	w.Client.Image.UpdateOneID(image).SetRegistryID(id).ExecX(ctx)
	w.Client.Image.Create().SetReference("hub.example.org/unused:1").SetName("unused:1").SetArchitecture("amd64").SetDigest("-").SetRegistryID(id).ExecX(ctx)
	errs := super.Ask(t, remove, managertest.Vars{"id": id}, nil)
	if errs.Code() != "FAILED_PRECONDITION" || !strings.Contains(errs[0].Message, "in use: 1; sessions that use them and have not ended: 1") {
		t.Errorf("removed while a session uses it: %s", errs)
	}
	w.Client.Session.UpdateOneID(session).SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).ExecX(ctx)
	super.Must(t, remove, managertest.Vars{"id": id}, nil)
	if errs := super.Ask(t, remove, managertest.Vars{"id": id}, nil); errs.Code() != "NOT_FOUND" {
		t.Errorf("removed twice: %s", errs)
	}
	left := w.Client.Image.Query().Where(entimage.Not(entimage.HasRegistry())).OnlyX(ctx)
	if left.ID != image || left.Status != entimage.StatusGone {
		t.Errorf("left is %+v", left)
	}
	var seen struct {
		Node struct {
			Image struct {
				Status   string
				Registry *struct{ ID uuid.UUID }
			}
		}
		Registries struct {
			Edges []struct{ Node struct{ ID uuid.UUID } }
		}
	}
	super.Must(t, `query($id: ID!) { node(id: $id) { ... on Session { image { status registry { id } } } } registries { edges { node { id } } } }`, managertest.Vars{"id": session}, &seen)
	if seen.Node.Image.Status != "GONE" || seen.Node.Image.Registry != nil {
		t.Errorf("the ended session shows %+v", seen)
	}
	for _, r := range seen.Registries.Edges {
		if r.Node.ID == id {
			t.Error("the registry is still listed")
		}
	}
	super.Must(t, create, managertest.Vars{"in": first}, nil)

	for action, want := range map[string]int{"updateRegistry": 6, "deleteRegistry": 3} {
		if n := w.Client.AuditEntry.Query().Where(auditentry.Action(action)).CountX(ctx); n != want {
			t.Errorf("%d rows of %s in the trail, want %d", n, action, want)
		}
	}
	for _, e := range w.Client.AuditEntry.Query().AllX(ctx) {
		if text := e.String(); strings.Contains(text, "secret") {
			t.Errorf("the trail has a password: %s", text)
		}
	}
}

package integration

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const deleteUser = `mutation($in: DeleteUserInput!) { deleteUser(input: $in) { task { id status } } }`

// purge deactivates and purges a user, and waits for the end of the task.
func purge(t *testing.T, c *clustertest.Cluster, by *managertest.Client, u *ent.User, in managertest.Vars) *ent.Task {
	t.Helper()
	by.Must(t, `mutation($id: ID!) { updateUser(input: {id: $id, status: INACTIVE}) { user { status } } }`, managertest.Vars{"id": u.ID}, nil)
	in["id"] = u.ID
	var got struct {
		DeleteUser struct{ Task struct{ ID uuid.UUID } }
	}
	by.Must(t, deleteUser, managertest.Vars{"in": in}, &got)
	managertest.Eventually(t, "the purge ends", func() bool {
		return c.Client.Task.GetX(c.System(t), got.DeleteUser.Task.ID).EndedAt != nil
	})
	done := c.Client.Task.GetX(c.System(t), got.DeleteUser.Task.ID)
	if done.Status != task.StatusDone {
		t.Fatalf("the purge is %s: %s", done.Status, done.Message)
	}
	return done
}

func put(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A user with a running session and folders is purged; another user gets the folders with their
// bytes, although they have a folder of the same name. The audit log and the session stay.
func TestPurgedUserLeavesHisFolders(t *testing.T) {
	c := clustertest.New(t, 1)
	d := clustertest.NewProxy(t, c)
	lead, admin := c.Manager.As(t, c.A.Lead), c.Manager.As(t, c.A.Admin)
	make := func(as *managertest.Client, name, text string) uuid.UUID {
		t.Helper()
		id, errs := clustertest.CreateFolder(t, as, managertest.Vars{"name": name})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		put(t, filepath.Join(d.Root, d.FolderRow(t, id).Path), text)
		return id
	}
	his, second, kept := make(c.Member, "data", "his"), make(c.Member, "cut", "moved already"), make(lead, "data", "the other's")
	running := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, running, lifecycle.Running)
	c.Member.Must(t, `mutation { createSessionGroup(input: {name: "apart", placement: SPREAD}) { sessionGroup { id } } }`, nil, nil)
	scope := c.Client.QuotaScope.Query().Where(quotascope.HolderID(c.A.Member.ID)).OnlyX(c.System(t))

	// The state is the same as if a manager had been killed after it moved the files of the second
	// folder, and before it wrote the row.
	was := d.FolderRow(t, second).Path
	old, now := hex.EncodeToString(c.A.Member.ID[:]), hex.EncodeToString(c.A.Lead.ID[:])
	moved := filepath.Join(d.Root, now, was[len(old):])
	if err := os.MkdirAll(filepath.Dir(moved), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(d.Root, was), moved); err != nil {
		t.Fatal(err)
	}

	purge(t, c, admin, c.A.Member, managertest.Vars{"foldersTo": c.A.Lead.ID})
	for id, want := range map[uuid.UUID][2]string{his: {"data-2", "his"}, second: {"cut", "moved already"}, kept: {"data", "the other's"}} {
		f := d.FolderRow(t, id)
		text, err := os.ReadFile(filepath.Join(d.Root, f.Path, "a.txt"))
		if f.Name != want[0] || *f.OwnerID != c.A.Lead.ID || string(text) != want[1] {
			t.Errorf("folder %s of %s holds %q, %v", f.Name, f.OwnerID, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(d.Root, old)); !os.IsNotExist(err) {
		t.Errorf("the scope of the purged user is on the volume: %v", err)
	}
	if c.Client.QuotaScope.Query().Where(quotascope.ID(scope.ID)).ExistX(c.System(t)) {
		t.Error("the scope of the purged user is in the database")
	}
	if c.Client.SessionGroup.Query().ExistX(c.System(t)) {
		t.Error("the session group of the purged user is in the database")
	}
	if s := c.Session(t, running); s.Status != lifecycle.Terminated || s.StatusMessage != "its owner is purged" {
		t.Errorf("the session of the purged user is %s: %s", s.Status, s.StatusMessage)
	}
	if status, _ := c.Member.Post(t, "/graphql", "application/json", []byte(`{"query": "{ viewer { initialPassword } }"}`)); status != http.StatusUnauthorized {
		t.Errorf("the login of the purged user gets %d", status)
	}
	remembered(t, c, c.A.Member, lead, running)
	// The new owner uses the folders.
	lead.Must(t, `mutation($id: ID!) { updateVfolder(input: {id: $id, name: "mine"}) { vfolder { name } } }`, managertest.Vars{"id": his}, nil)
	lead.Must(t, trashFolder, managertest.Vars{"id": his}, nil)
	lead.Must(t, deleteFolder, managertest.Vars{"id": his}, nil)
	c.CheckInvariants(t, true)
}

// remembered checks the records with the name of a purged user, and that the user is not listed.
func remembered(t *testing.T, c *clustertest.Cluster, u *ent.User, mate *managertest.Client, owned uuid.UUID) {
	t.Helper()
	for action, actor := range map[string]string{"updateUser": c.A.Admin.Email, "deleteUser": c.A.Admin.Email, "deleteUser.done": c.A.Admin.Email, "createSession": u.Email} {
		e := c.Client.AuditEntry.Query().Where(auditentry.Action(action), auditentry.ActorEmail(actor)).FirstX(c.System(t))
		if action != "createSession" && (*e.EntityID != u.ID || *e.DomainID != u.DomainID) {
			t.Errorf("the audit log has for %s: %v", action, e)
		}
		if action == "deleteUser.done" && e.Message != u.Email+", 2 folders to "+c.A.Lead.Email {
			t.Errorf("the audit log has %q", e.Message)
		}
	}
	if got := c.Client.Session.Query().Where(session.ID(owned)).QueryOwner().OnlyX(c.System(t)); got.FullName != u.Email || got.ID != u.ID {
		t.Errorf("the session of the purged user is of %q", got.FullName)
	}
	var list struct {
		Users struct {
			Edges []struct{ Node struct{ ID uuid.UUID } }
		}
	}
	mate.Must(t, "{ users(first: 100) { edges { node { id } } } }", nil, &list)
	for _, e := range list.Users.Edges {
		if e.Node.ID == u.ID {
			t.Error("the user is still listed")
		}
	}
}

func TestPurgedUserTakesHisFoldersAlong(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	loner := c.Manager.As(t, c.A.Loner)
	id, errs := clustertest.CreateFolder(t, loner, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	path := filepath.Join(d.Root, d.FolderRow(t, id).Path)
	put(t, path, "secret")
	root := c.Manager.As(t, c.Superadmin)
	if errs := root.Ask(t, deleteUser, managertest.Vars{"in": managertest.Vars{"id": c.A.Loner.ID}}, nil); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("nothing was said of an active user's folders: %s", errs)
	}
	purge(t, c, root, c.A.Loner, managertest.Vars{"deleteFolders": true})
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the folder of the purged user exists: %v", err)
	}
	if c.Client.User.Query().Where(user.ID(c.A.Loner.ID)).ExistX(c.System(t)) {
		t.Error("the row of the purged user exists although no object refers to it")
	}
}

// The user who was to receive the folders was deactivated in the meantime. The folders stay where
// they were.
func TestHeirWhoIsGone(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	ctx := c.System(t)
	id, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	path := filepath.Join(d.Root, d.FolderRow(t, id).Path)
	put(t, path, "his")
	c.Client.User.Update().Where(user.IDIn(c.A.Member.ID, c.A.Lead.ID)).SetStatus(user.StatusInactive).ExecX(ctx)
	in := fmt.Sprintf(`{"ID": %q, "FoldersTo": %q}`, c.A.Member.ID, c.A.Lead.ID)
	begun := c.Client.Task.Create().SetKind("purge_user").SetInput([]byte(in)).SetSubjectID(c.A.Member.ID).SaveX(ctx)
	managertest.Eventually(t, "the purge ends", func() bool { return c.Client.Task.GetX(ctx, begun.ID).EndedAt != nil })
	if got := c.Client.Task.GetX(ctx, begun.ID); got.Status != task.StatusFailed || got.Message != "the user who was to get the folders is no longer active" {
		t.Errorf("the purge is %s: %s", got.Status, got.Message)
	}
	if text, err := os.ReadFile(filepath.Join(path, "a.txt")); string(text) != "his" || *d.FolderRow(t, id).OwnerID != c.A.Member.ID {
		t.Errorf("the folder is not where it was: %v", err)
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// Other users see nothing of a user's sessions and folders with any request. All answers are those
// for objects that do not exist.
func TestOthersSeeNothing(t *testing.T) {
	a, b := platform.User(t), platform.User(t)
	f, err := a.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "diary"})
	if err != nil {
		t.Fatal(err)
	}
	in := cluster.Interactive()
	in.Name = "secret-plan"
	s := a.Run(in)
	a.Until(s.ID, "RUNNING")
	kernel := a.Show(s.ID).Kernels[0].ID

	for _, id := range []string{s.ID, f.ID, kernel} {
		var out struct{ Node *struct{ ID string } }
		b.Query(`query($id: ID!) { node(id: $id) { id } }`, object{"id": id}, &out)
		if out.Node != nil {
			t.Errorf("node(%s) is there", id)
		}
	}
	var lists map[string]struct{ TotalCount int }
	b.Query(`query($s: ID!, $f: ID!, $owner: ID!) {
  all: sessions { totalCount }
  byId: sessions(where: {id: $s}) { totalCount }
  byName: sessions(where: {name: "secret-plan"}) { totalCount }
  byOwner: sessions(where: {ownerID: $owner}) { totalCount }
  not: sessions(where: {not: {name: "x"}}) { totalCount }
  or: sessions(where: {or: [{id: $s}, {name: "secret-plan"}]}) { totalCount }
  folders: vfolders { totalCount }
  folder: vfolders(where: {id: $f}) { totalCount }
  users: users(where: {id: $owner}) { totalCount }
}`, object{"s": s.ID, "f": f.ID, "owner": a.ID}, &lists)
	for name, l := range lists {
		if l.TotalCount != 0 {
			t.Errorf("%s has %d", name, l.TotalCount)
		}
	}
	for name, try := range map[string]func() error{
		"terminate": func() error { _, err := b.TerminateSession(t.Context(), s.ID, true); return err },
		"rename":    func() error { _, err := b.RenameSession(t.Context(), s.ID, "mine-now"); return err },
		"terminal": func() error {
			_, err := b.OpenTerminal(t.Context(), client.TerminalOptions{Session: s.ID})
			return err
		},
		"port":          func() error { _, err := b.DialPort(t.Context(), s.ID, 80); return err },
		"log":           func() error { return b.Log(t.Context(), s.ID, new(strings.Builder)) },
		"delete folder": func() error { _, err := b.TrashFolder(t.Context(), f.ID); return err },
		"list files":    func() error { _, err := b.Files(t.Context(), f.ID, ""); return err },
		"upload": func() error {
			_, err := b.CreateUpload(t.Context(), f.ID, []client.UploadFileInput{{Path: "x", Size: 1}})
			return err
		},
		"mount": func() error {
			in := cluster.Interactive()
			in.Mounts = []client.MountInput{{Vfolder: f.ID}}
			_, err := b.CreateSession(t.Context(), in)
			return err
		},
		"a session in the project": func() error {
			in := cluster.Interactive()
			in.Project = a.Project
			_, err := b.CreateSession(t.Context(), in)
			return err
		},
	} {
		if err := try(); !errdefs.IsNotFound(err) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	if s := a.Show(s.ID); s.Status != "RUNNING" || s.Name != "secret-plan" {
		t.Errorf("the session is %s and called %s", s.Status, s.Name)
	}
	unheard(t, a, b, s.ID)
}

// unheard subscribes as b and ends a session of a. b must get no event before the event of their
// own later session.
func unheard(t *testing.T, a, b *cluster.User, session string) {
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Timeout)
	defer cancel()
	err := b.Subscribe(ctx, client.Request{Query: `subscription($id: ID) { sessionChanged(id: $id) { id } }`, Variables: object{"id": session}},
		func(data json.RawMessage) error { return fmt.Errorf("heard %s", data) })
	if !errdefs.IsNotFound(err) {
		t.Errorf("subscription to the session: %v, want not found", err)
	}
	heard := make(chan string, 64)
	done := make(chan error, 1)
	go func() {
		done <- b.WatchSession(ctx, "", nil, func(s client.SessionState) bool {
			heard <- s.ID
			return true
		})
	}()
	a.End(session)
	own := b.Run(cluster.Batch("true"))
	for {
		select {
		case id := <-heard:
			if id != own.ID {
				t.Errorf("got an event about %s", id)
			}
		case <-ctx.Done():
			t.Fatal("got no event about one's own session")
		case err := <-done:
			t.Fatalf("subscription ended: %v", err)
		}
		if b.Show(own.ID).Ended() {
			return
		}
	}
}

// A monitor can read everything and change nothing.
func TestMonitor(t *testing.T) {
	u, m := platform.User(t), platform.UserAs(t, "MONITOR")
	f, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "watched"})
	if err != nil {
		t.Fatal(err)
	}
	s := u.Run(cluster.Batch("echo seen"))
	u.Until(s.ID, "TERMINATED")
	if got, err := m.Session(t.Context(), s.ID); err != nil || got.Owner.Email != u.Email {
		t.Errorf("a monitor reads a session: %+v, %v", got, err)
	}
	if all, err := m.Folders(t.Context(), client.FolderFilter{ID: f.ID}); err != nil || len(all) != 1 {
		t.Errorf("a monitor lists a folder: %v, %v", all, err)
	}
	for name, try := range map[string]func() error{
		"terminate": func() error { _, err := m.TerminateSession(t.Context(), s.ID, true); return err },
		"rename a folder": func() error {
			_, err := m.UpdateFolder(t.Context(), client.UpdateVfolderInput{ID: f.ID, Name: new("moved")})
			return err
		},
		"trash a folder":  func() error { _, err := m.TrashFolder(t.Context(), f.ID); return err },
		"cordon":          func() error { _, err := m.Cordon(t.Context(), agentID(t, m), ""); return err },
		"a token to join": func() error { _, err := m.CreateJoinToken(t.Context(), "agent"); return err },
		"promote oneself": func() error {
			_, err := m.UpdateUser(t.Context(), client.UpdateUserInput{ID: m.ID, Role: "superadmin"})
			return err
		},
		"disable somebody": func() error {
			_, err := m.UpdateUser(t.Context(), client.UpdateUserInput{ID: u.ID, Status: "INACTIVE"})
			return err
		},
	} {
		if err := try(); !errdefs.IsPermissionDenied(err) && !errdefs.IsNotFound(err) {
			t.Errorf("a monitor: %s: %v", name, err)
		}
	}
	// A user cannot give themselves a higher role either.
	if _, err := u.UpdateUser(t.Context(), client.UpdateUserInput{ID: u.ID, Role: "superadmin"}); !errdefs.IsPermissionDenied(err) {
		t.Errorf("a user promotes oneself: %v", err)
	}
}

func agentID(t *testing.T, u *cluster.User) string {
	t.Helper()
	agents, err := u.Agents(t.Context(), "")
	if err != nil || len(agents) != 1 {
		t.Fatalf("agents: %v, %v", agents, err)
	}
	return agents[0].ID
}

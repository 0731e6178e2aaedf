package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// invite shares a folder with another user, who accepts, and returns the share.
func invite(t *testing.T, owner, friend *cluster.User, folder, permission string) string {
	t.Helper()
	var got struct {
		ShareVfolder struct {
			Results []struct {
				Error *string
				Share *struct{ ID string }
			}
		}
	}
	owner.Query(`mutation($id: ID!, $emails: [String!]!, $p: FolderPermission!) {
		shareVfolder(input: {id: $id, emails: $emails, permission: $p}) { results { error share { id } } } }`,
		map[string]any{"id": folder, "emails": []string{friend.Email}, "p": permission}, &got)
	r := got.ShareVfolder.Results[0]
	if r.Share == nil {
		t.Fatalf("share with %s: %v", friend.Email, *r.Error)
	}
	share(friend, r.Share.ID, "acceptVfolderShare", "")
	return r.Share.ID
}

// share changes a share.
func share(as *cluster.User, id, mutation, more string) {
	as.Query(`mutation($id: ID!) { `+mutation+`(input: {id: $id`+more+`}) { share { status } } }`, map[string]any{"id": id}, &struct{}{})
}

// A user is invited read-only, works with the folder in a session, cannot write, gets the
// permission to write, writes, and loses access, all while the session runs.
func TestSharedFolderInARunningSession(t *testing.T) {
	owner, friend := platform.User(t), platform.User(t)
	shell := owner.Shell()
	if err := os.WriteFile(filepath.Join(shell.Dir, "data.txt"), []byte("forty-two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	folder, err := owner.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "thesis"})
	if err != nil {
		t.Fatal(err)
	}
	shell.Must("folder", "put", "thesis", "data.txt")
	id := invite(t, owner, friend, folder.ID, "READ_ONLY")
	if _, err := friend.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "mine"}); err != nil {
		t.Fatal(err)
	}
	in := cluster.Interactive()
	in.Mounts = []client.MountInput{{Vfolder: "thesis", Target: "/shared/thesis"}, {Vfolder: "mine", Target: "/mine"}}
	s := friend.Run(in)
	friend.Until(s.ID, "RUNNING")
	does := func(script string) bool {
		t.Helper()
		_, code := friend.Exec(s.ID, script)
		return code == 0
	}
	if out, code := friend.Exec(s.ID, "cat /shared/thesis/data.txt"); code != 0 || out != "forty-two\n" {
		t.Fatalf("the friend reads %q", out)
	}
	if out, code := friend.Exec(s.ID, "touch /shared/thesis/result"); code == 0 || !strings.Contains(out, "Read-only file system") {
		t.Errorf("the friend writes to a read-only folder: %q", out)
	}

	share(owner, id, "updateVfolderShare", ", permission: READ_WRITE")
	cluster.Eventually(t, "the friend writes", func() bool { return does("echo done > /shared/thesis/result") })
	if names := shell.Must("folder", "files", "thesis"); !strings.Contains(names, "result") {
		t.Errorf("the owner sees %s", names)
	}

	// One program has a file open for writing, and the working directory of another one is in the
	// folder, whose path has been renamed.
	friend.Exec(s.ID, `sh -c 'exec 5>> /shared/thesis/log; echo $$ > /writer; while sleep 0.1; do echo more >&5; done' > /dev/null 2>&1 &
sh -c 'cd /shared/thesis; echo $$ > /worker; exec sleep 1000' > /dev/null 2>&1 &
until test -s /writer -a -s /worker; do sleep 0.1; done`)
	if out, code := friend.Exec(s.ID, "kill -0 $(cat /writer) $(cat /worker) && mv /shared /moved && mkdir -p /shared/thesis && touch /moved/thesis/one"); code != 0 {
		t.Fatalf("move the folder's parent: %s", out)
	}
	share(owner, id, "updateVfolderShare", ", permission: READ_ONLY")
	cluster.Eventually(t, "the friend reads only", func() bool { return !does("touch /moved/thesis/two") })
	if !does("cat /moved/thesis/data.txt && touch /mine/x") {
		t.Error("the friend cannot read, or cannot write to their own folder")
	}

	share(owner, id, "revokeVfolderShare", "")
	cluster.Eventually(t, "the friend's directory is empty", func() bool { return does(`test -z "$(ls -A /moved/thesis)"`) })
	if does("kill -0 $(cat /worker)") {
		t.Error("a program in the folder still has access")
	}
	if !does("touch /mine/y") {
		t.Error("the friend's own folder has disappeared too")
	}
	var got struct {
		Node struct {
			Status  string
			Mounts  []struct{ RevokedAt *string }
			History []struct{ Code string }
		}
	}
	friend.Query(`query($id: ID!) { node(id: $id) { ... on Session { status mounts { revokedAt } history { code } } } }`, map[string]any{"id": s.ID}, &got)
	codes := ""
	for _, e := range got.Node.History {
		codes += " " + e.Code
	}
	if got.Node.Status != "RUNNING" || !strings.HasSuffix(codes, "folder_writable folder_read_only folder_revoked") {
		t.Errorf("the session is %s with the codes%s", got.Node.Status, codes)
	}
	if shell.Must("folder", "files", "thesis") == "" {
		t.Error("the owner's files are missing")
	}
	if _, err := friend.TerminateSession(t.Context(), s.ID, true); err != nil {
		t.Error(err)
	}
}

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// A user copies files to and from a running session, as the container's user. They reach nothing
// outside of the container.
func TestFilesOfASession(t *testing.T) {
	u := platform.User(t)
	folder, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	in := cluster.Interactive()
	in.Mounts = []client.MountInput{{Vfolder: folder.Name, Target: "/home/work/kept"}}
	s := u.Run(in)
	u.Until(s.ID, "RUNNING")
	at := client.ContainerRef{Session: s.ID}
	shell := u.Shell()
	big := strings.Repeat("0123456789", 1_000_000)
	if err := os.WriteFile(filepath.Join(shell.Dir, "big"), []byte(big), 0o750); err != nil {
		t.Fatal(err)
	}
	shell.Must("cp", "big", s.Name+":deep/er/big")
	if out, code := u.Exec(s.ID, "stat -c %a deep/er/big; wc -c < deep/er/big; ls -a deep/er"); code != 0 || out != "750\n10000000\n.\n..\nbig\n" {
		t.Errorf("in the container: %d %q", code, out)
	}
	shell.Must("cp", s.Name+":deep/*/big", "back")
	if got, err := os.ReadFile(filepath.Join(shell.Dir, "back")); err != nil || string(got) != big {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	// Links are resolved inside the container.
	u.Exec(s.ID, "echo mine > /etc/berth-e2e; ln -s /etc/berth-e2e link; ln -s ../../../../../../etc/berth-e2e up")
	for _, name := range []string{"link", "up", "../../etc/berth-e2e"} {
		var out strings.Builder
		d := &client.SessionDownload{ContainerRef: at, Path: name}
		if err := d.CopyTo(t.Context(), u.Client, &out); err != nil || out.String() != "mine\n" {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
	if _, err := os.Stat("/etc/berth-e2e"); err == nil {
		t.Error("the file is on the machine")
	}
	list, err := u.SessionFiles(t.Context(), at, "")
	names := []string{}
	for _, f := range list {
		names = append(names, f.Type+" "+f.Name)
	}
	if d := cmp.Diff([]string{"DIRECTORY deep", "DIRECTORY kept", "SYMLINK link", "SYMLINK up"}, names); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	stranger := platform.User(t)
	if _, err := stranger.SessionFiles(t.Context(), at, ""); err == nil {
		t.Error("another user lists the files")
	}
	u.End(s.ID)
	if _, err := u.SessionFiles(t.Context(), at, ""); err == nil {
		t.Error("the files of an ended session are listed")
	}
}

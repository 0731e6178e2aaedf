package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// A user uploads data, a session computes with it, and the user downloads the result.
func TestFolderRoundTrip(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	// The size is more than one chunk of an upload, and not a multiple of one.
	data := make([]byte, 9<<20+4711)
	_, _ = rand.Read(data)
	if err := os.MkdirAll(filepath.Join(berth.Dir, "in/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"in/data.bin": data, "in/deep/empty": nil, "in/deep/ünï cöde.txt": []byte("ok\n")} {
		if err := os.WriteFile(filepath.Join(berth.Dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	berth.Must("folder", "create", "work")
	berth.Must("folder", "put", "work", "in")
	out := berth.Must("run", "-q", "minimal:1", "--cpu", "0.5", "--mem", "128m", "-v", "work:/data", "--", "sh", "-ec",
		`cd /data; sha256sum in/data.bin | cut -d" " -f1; cp in/data.bin out.bin; cat "in/deep/ünï cöde.txt" >> out.bin; id -u`)
	sum, _, _ := strings.Cut(out, "\n")
	if want := fmt.Sprintf("%x", sha256.Sum256(data)); sum != want {
		t.Errorf("the session reads other bytes: %s, want %s", sum, want)
	}
	berth.Must("folder", "get", "work:out.bin", "result.bin")
	got, err := os.ReadFile(filepath.Join(berth.Dir, "result.bin"))
	if err != nil || !bytes.Equal(got, append(data, "ok\n"...)) {
		t.Errorf("the result differs: %d bytes, want %d (%v)", len(got), len(data)+3, err)
	}
	if names := berth.Must("folder", "files", "work:in/deep"); !strings.Contains(names, "ünï cöde.txt") || !strings.Contains(names, "empty") {
		t.Errorf("files: %s", names)
	}
}

// A folder that is mounted read-only cannot be written to, and a mounted folder cannot be deleted.
func TestMountedFolder(t *testing.T) {
	u := platform.User(t)
	folder, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "precious"})
	if err != nil {
		t.Fatal(err)
	}
	in := cluster.Interactive()
	in.Mounts = []client.MountInput{{Vfolder: "precious", Target: "/data", ReadOnly: true}}
	s := u.Run(in)
	u.Until(s.ID, "RUNNING")
	for _, script := range []string{"echo x > /data/file", "mkdir /data/dir", "mount -o remount,rw /data", "chmod 777 /data"} {
		if out, code := u.Exec(s.ID, script); code == 0 {
			t.Errorf("%q is allowed on a read-only folder: %s", script, out)
		}
	}
	if _, err := u.TrashFolder(t.Context(), folder.ID); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("delete a mounted folder: %v", err)
	}
	berth := u.Shell()
	if r := berth.Run("folder", "rm", "precious"); r.Code != 5 || !strings.Contains(r.Stderr, "mount") {
		t.Errorf("folder rm of a mounted folder: %+v", r)
	}
	u.End(s.ID)
	if r := berth.Run("folder", "rm", "precious"); r.Code != 0 {
		t.Errorf("folder rm: %+v", r)
	}
	cluster.Eventually(t, "the folder was deleted", func() bool {
		left, err := u.Folders(t.Context(), client.FolderFilter{})
		return err == nil && len(left) == 0
	})
	in.IdempotencyKey = rand.Text()
	if _, err := u.CreateSession(t.Context(), in); !errdefs.IsNotFound(err) && !errdefs.IsInvalidArgument(err) {
		t.Errorf("mount a deleted folder: %v", err)
	}
}

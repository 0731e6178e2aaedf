package volume_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// asNobody runs a program of the machine as a user without rights.
func asNobody(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// armed creates a set-uid program in a folder, as root of a container can.
func armed(h *storagetest.Host, name string) string {
	h.TB.Helper()
	raw, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		h.TB.Fatal(err)
	}
	h.Write(name, string(raw))
	at := filepath.Join(h.Path, name)
	if err := os.Chmod(at, os.ModeSetuid|os.ModeSetgid|0o755); err != nil {
		h.TB.Fatal(err)
	}
	// VFS_CAP_REVISION_2, effective, CAP_SETUID
	capability := []byte{1, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(at, "security.capability", capability, 0); err != nil {
		h.TB.Fatal(err)
	}
	return at
}

// Directories that an earlier version left readable are closed when a proxy starts. Programs that
// users reach nevertheless do not give them the rights of root.
func TestProgramsInFoldersGiveNoRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can do this")
	}
	dir, err := os.MkdirTemp("/var/tmp", "confine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := storagetest.NewOn(t, filepath.Join(dir, "mount"))
	su := armed(h, "su")
	var path []string
	for at := filepath.Dir(su); at != "/var/tmp"; at = filepath.Dir(at) {
		path = append(path, at)
	}
	open := func() {
		t.Helper()
		for _, at := range path {
			if err := os.Chmod(at, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.Stop()
	open()
	if out, err := asNobody(su, "-u"); err != nil || out != "0" {
		t.Skipf("a set-uid program has no effect on this machine: %q, %v", out, err)
	}
	h.Start()
	if out, err := asNobody(su, "-u"); err == nil {
		t.Errorf("the path was not walked after a restart: %q", out)
	}
	open()
	if out, err := asNobody(su, "-u"); err != nil || out != "65534" {
		t.Errorf("a set-uid program of a folder runs as %q, %v", out, err)
	}
}

// Copies and changed files are not set-uid programs.
func TestCopiesAreNotArmed(t *testing.T) {
	h, _, address := storagetest.NewSFTP(t)
	armed(h, "dir/su")
	if _, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: storagetest.Pairs("dir", "copy")}); err != nil {
		t.Fatal(err)
	}
	disarmed := func(name string) {
		t.Helper()
		at := filepath.Join(h.Path, name)
		st, err := os.Stat(at)
		if err != nil || st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%s has mode %v, %v", name, st.Mode(), err)
		}
		if n, err := unix.Getxattr(at, "security.capability", nil); err == nil {
			t.Errorf("%s has capabilities, %d bytes", name, n)
		}
	}
	disarmed("copy/su")
	clone := &storagepb.FolderRef{Volume: "main", Scope: h.Ref.Scope, Folder: uuid.NewString()}
	stream, err := h.API.CloneFolder(h.Ctx(), &storagepb.CloneFolderRequest{From: h.Ref, To: clone})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := storagetest.Follow(t, stream); err != nil {
		t.Fatal(err)
	}
	cloned, err := h.API.GetFolder(h.Ctx(), clone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := filepath.Rel(h.Path, filepath.Join(h.Mount, cloned.Path, "dir/su"))
	if err != nil {
		t.Fatal(err)
	}
	disarmed(at)
	// SFTP changes a file in place.
	f, err := storagetest.SFTPClient(t, address, "rw").OpenFile("/mine/data/dir/su", os.O_WRONLY)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	disarmed("dir/su")
}

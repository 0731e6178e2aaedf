package storage_test

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
)

// asNobody runs a program of the machine as a user without rights.
func asNobody(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// armed makes a set-uid program in a folder, as root of a container can.
func (h *host) armed(name string) string {
	h.t.Helper()
	raw, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(name, string(raw))
	at := filepath.Join(h.path, name)
	if err := os.Chmod(at, os.ModeSetuid|os.ModeSetgid|0o755); err != nil {
		h.t.Fatal(err)
	}
	// VFS_CAP_REVISION_2, effective, CAP_SETUID
	capability := []byte{1, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(at, "security.capability", capability, 0); err != nil {
		h.t.Fatal(err)
	}
	return at
}

// What an earlier version left open is closed when a proxy starts, and what is reached
// nevertheless gives no one the rights of root.
func TestProgramsInFoldersGiveNoRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can do this")
	}
	dir, err := os.MkdirTemp("/var/tmp", "confine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := newHostOn(t, filepath.Join(dir, "mount"))
	su := h.armed("su")
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
	h.stop()
	open()
	if out, err := asNobody(su, "-u"); err != nil || out != "0" {
		t.Skipf("a set-uid program has no effect on this machine: %q, %v", out, err)
	}
	h.start()
	if out, err := asNobody(su, "-u"); err == nil {
		t.Errorf("nobody walked the path after a restart: %q", out)
	}
	open()
	if out, err := asNobody(su, "-u"); err != nil || out != "65534" {
		t.Errorf("a set-uid program of a folder runs as %q, %v", out, err)
	}
}

// Copies and changed files are no set-uid programs.
func TestCopiesAreNotArmed(t *testing.T) {
	h, _, address := newSFTP(t)
	h.armed("dir/su")
	if _, err := h.transfer(false, &storagepb.TransferRequest{From: h.ref, To: h.ref, Files: pairs("dir", "copy")}); err != nil {
		t.Fatal(err)
	}
	disarmed := func(name string) {
		t.Helper()
		at := filepath.Join(h.path, name)
		st, err := os.Stat(at)
		if err != nil || st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%s has mode %v, %v", name, st.Mode(), err)
		}
		if n, err := unix.Getxattr(at, "security.capability", nil); err == nil {
			t.Errorf("%s has capabilities, %d bytes", name, n)
		}
	}
	disarmed("copy/su")
	clone := &storagepb.FolderRef{Volume: "main", Scope: h.ref.Scope, Folder: uuid.NewString()}
	stream, err := h.api.CloneFolder(h.ctx(), &storagepb.CloneFolderRequest{From: h.ref, To: clone})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := follow(t, stream); err != nil {
		t.Fatal(err)
	}
	cloned, err := h.api.GetFolder(h.ctx(), clone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := filepath.Rel(h.path, filepath.Join(h.mount, cloned.Path, "dir/su"))
	if err != nil {
		t.Fatal(err)
	}
	disarmed(at)
	// SFTP changes a file where it is.
	f, err := client(t, address, "rw").OpenFile("/mine/data/dir/su", os.O_WRONLY)
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

package confine_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/confine"
)

const nobody = 65534

func TestDirectoryIsTightened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a/b")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, os.ModeSetgid|0o775); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := confine.Directory(dir, 0o711); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o711 || st.Mode()&os.ModeSetgid == 0 {
			t.Errorf("mode %v, %v", st.Mode(), err)
		}
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := confine.Directory(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o500 {
		t.Errorf("a stricter mode became %v, %v", st.Mode(), err)
	}
}

// A directory with mounts below, such as those of scopes, stays as it is.
func TestMountsBelowAreNotHidden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dir := t.TempDir()
	below := filepath.Join(dir, "scope")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", below, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(below, unix.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(below, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := confine.NewMount(dir, slog.New(slog.DiscardHandler))
	same, err := m.Apply(root)
	if err != nil {
		t.Fatal(err)
	}
	defer same.Close()
	defer m.Release()
	if _, err := os.Stat(filepath.Join(below, "file")); err != nil || same != root {
		t.Errorf("a mount below is hidden: %v", err)
	}
}

// euid runs a copy of id that belongs to root and is set-uid, as no one.
func euid(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command(program, "-u")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("run as nobody: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestSetUIDHasNoEffect(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dir, err := os.MkdirTemp("/var/tmp", "confine") // everyone may walk there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		os.RemoveAll(dir)
	})
	program := filepath.Join(dir, "id")
	raw, err := os.ReadFile("/usr/bin/id")
	if err == nil {
		err = os.WriteFile(program, raw, 0o755)
	}
	if err == nil {
		err = os.Chmod(program, os.ModeSetuid|0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := euid(t, program); got != "0" {
		t.Skipf("a set-uid program has euid %s here without any mount", got)
	}
	m, second := confine.NewMount(dir, slog.New(slog.DiscardHandler)), confine.NewMount(dir, slog.New(slog.DiscardHandler))
	apply := func(m *confine.Mount) uint64 {
		t.Helper()
		root, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if root, err = m.Apply(root); err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		id, err := confine.MountID(root)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := apply(m)
	if again, other := apply(m), apply(second); first != again || first != other {
		t.Errorf("mounts %d, then %d, and %d of another process", first, again, other)
	}
	if got := euid(t, program); got != "65534" {
		t.Errorf("a set-uid program of a volume has euid %s", got)
	}
	// After a kill, the next process removes the mount.
	second.Release()
	if got := euid(t, program); got != "0" {
		t.Errorf("the mount stayed: euid %s", got)
	}
	// A process that still runs mounts it again, and leaves nothing at its end.
	apply(m)
	if got := euid(t, program); got != "65534" {
		t.Errorf("after another process let go, euid %s", got)
	}
	busy, err := os.Open(dir) // of an operation that ends a little later
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { busy.Close() })
	m.Release()
	if got := euid(t, program); got != "0" {
		t.Errorf("the mount stayed: euid %s", got)
	}
}

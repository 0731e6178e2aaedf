package mount

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/confine"
)

// A volume that is a plain directory is bind-mounted on itself with nosuid and nodev. An empty
// mount point without the mark of a storage proxy is left alone.
func TestVolumesAreConfined(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	volume := func() Volume {
		dir := t.TempDir()
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		return Volume{Path: dir, Guard: confine.NewMount(dir, slog.New(slog.DiscardHandler))}
	}
	marked, bare := volume(), volume()
	for _, dir := range []string{".berth", "scope/folder"} {
		if err := os.MkdirAll(filepath.Join(marked.Path, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(marked.Path, ".berth/volume"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Volumes{"v": marked}.Open(t.Context(), []Folder{{Volume: "v", Path: "scope/folder", Target: "/data"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(b.files[0].Fd()), &st); err != nil || st.Flags&unix.ST_NOSUID == 0 || st.Flags&unix.ST_NODEV == 0 {
		t.Errorf("the folder's mount has the flags %#x, %v", st.Flags, err)
	}
	if err := bare.Confine(); err != nil {
		t.Fatal(err)
	}
	if on, err := mountinfo.Mounted(bare.Path); err != nil || on {
		t.Errorf("a bare mount point is mounted: %v, %v", on, err)
	}
}

package image_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/simulator/image"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
)

func TestMakeAndClose(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	i, err := image.Make(t.Context())
	if errdefs.IsUnavailable(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(i.Mount, &st); err != nil || st.Type != unix.BTRFS_SUPER_MAGIC {
		t.Errorf("type %#x, %v", st.Type, err)
	}
	// An open file does not prevent Close.
	f, err := os.Create(filepath.Join(i.Mount, "open"))
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- i.Close() }()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSweep leaves an image like a killed process does: mounted, with its lock free.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dead := simulatortest.Image(t)
	dir := filepath.Dir(dead.Mount)
	image.Abandon(dead)
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, long, long); err != nil {
		t.Fatal(err)
	}
	simulatortest.Image(t)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the image of a dead process is still there: %v", err)
	}
}

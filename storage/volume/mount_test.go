package volume_test

import (
	"errors"
	"os"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// A real mount is used without Create, is never kept busy, and the files below its mount point are
// left alone after an unmount.
func TestRealMount(t *testing.T) {
	h := &storagetest.Host{TB: t, Mount: t.TempDir(), Signer: storagetest.NewSigner(t)}
	mount := func() {
		t.Helper()
		err := unix.Mount("tmpfs", h.Mount, "tmpfs", 0, "size=16m")
		if errors.Is(err, unix.EPERM) {
			t.Skip("may not mount")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mount()
	defer func() { _ = unix.Unmount(h.Mount, unix.MNT_DETACH) }()
	h.Config = storage.Config{Name: "s1", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: storagetest.VFS, MountPath: h.Mount,
	}}}
	h.Start()
	defer h.Stop()
	scope := &storagepb.ScopeRequest{Volume: "main", Scope: uuid.NewString()}
	if _, err := h.API.CreateScope(h.Ctx(), scope); err != nil {
		t.Fatal(err)
	}
	unmount := func() error { return unix.Unmount(h.Mount, 0) }
	wait.Until(t, "the volume idle", func() bool { return unmount() == nil })
	_, err := h.API.CreateScope(h.Ctx(), scope)
	storagetest.WantCode(t, err, codes.Unavailable)
	h.WaitHealth(storagepb.Volume_UNAVAILABLE)
	if left, err := os.ReadDir(h.Mount); err != nil || len(left) > 0 {
		t.Errorf("below the mount: %v %v", left, err)
	}
	// Another, empty file system at the same mount point is not the volume.
	mount()
	_, err = h.API.CreateScope(h.Ctx(), scope)
	storagetest.WantCode(t, err, codes.Unavailable)
	if left, err := os.ReadDir(h.Mount); err != nil || len(left) > 0 {
		t.Errorf("on the other file system: %v %v", left, err)
	}
}

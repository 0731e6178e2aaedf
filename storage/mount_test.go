package storage_test

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
)

// A real mount: taken without Create, never kept busy, and what is below it
// left alone after an unmount.
func TestRealMount(t *testing.T) {
	h := &host{t: t, mount: t.TempDir(), signer: newSigner(t)}
	mount := func() {
		t.Helper()
		err := unix.Mount("tmpfs", h.mount, "tmpfs", 0, "size=16m")
		if errors.Is(err, unix.EPERM) {
			t.Skip("may not mount")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mount()
	defer func() { _ = unix.Unmount(h.mount, unix.MNT_DETACH) }()
	h.cfg = storage.Config{Name: "s1", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: vfs, MountPath: h.mount,
	}}}
	h.start()
	defer h.stop()
	scope := &storagepb.ScopeRequest{Volume: "main", Scope: uuid.NewString()}
	if _, err := h.api.CreateScope(h.ctx(), scope); err != nil {
		t.Fatal(err)
	}
	unmount := func() error { return unix.Unmount(h.mount, 0) }
	wait.Until(t, "the volume idle", func() bool { return unmount() == nil })
	_, err := h.api.CreateScope(h.ctx(), scope)
	wantCode(t, err, codes.Unavailable)
	h.waitHealth(storagepb.Volume_UNAVAILABLE)
	if left, err := os.ReadDir(h.mount); err != nil || len(left) > 0 {
		t.Errorf("below the mount: %v %v", left, err)
	}
	// Another, empty file system at its place is not the volume.
	mount()
	_, err = h.api.CreateScope(h.ctx(), scope)
	wantCode(t, err, codes.Unavailable)
	if left, err := os.ReadDir(h.mount); err != nil || len(left) > 0 {
		t.Errorf("on the other file system: %v %v", left, err)
	}
}

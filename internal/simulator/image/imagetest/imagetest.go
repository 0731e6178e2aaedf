// Package imagetest provides a btrfs file system to a test.
package imagetest

import (
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/sys/mountinfo"

	"github.com/berthhq/berth/internal/simulator/image"
)

// New mounts a file system until the test ends, and returns its mount point and device. It skips
// the test if this machine does not support it.
func New(t testing.TB) (mount, device string) {
	t.Helper()
	img, err := image.Make(t.Context())
	if errdefs.IsUnavailable(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := img.Close(); err != nil {
			t.Error(err)
		}
	})
	at, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(img.Mount))
	if err != nil || len(at) != 1 {
		t.Fatalf("mounts at %s: %v, %v", img.Mount, at, err)
	}
	return img.Mount, at[0].Source
}

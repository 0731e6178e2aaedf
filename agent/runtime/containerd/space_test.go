package containerd_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// A pull that fills the disk says what it needs and what is free, and leaves neither an image nor the bytes of the
// layer that did not fit.
func TestFullDisk(t *testing.T) {
	small, err := os.MkdirTemp("", "small")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(small) })
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=12m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	runtimetest.Build(t) // not on the small disk
	t.Setenv("TMPDIR", small)
	r := open(t, containerdtest.Start(t), containerdtest.Dir(t))
	s := newSource(t)
	reference, digest, _ := s.push(t, 1, 24<<20)
	_, err = r.Pull(t.Context(), runtime.PullRequest{Reference: reference, Digest: digest, PlainHTTP: true}, func(runtime.Progress) {})
	if !errdefs.IsResourceExhausted(err) || !strings.Contains(err.Error(), "more bytes") || !strings.Contains(err.Error(), "bytes are free") {
		t.Fatalf("error is %v, want the needed and the free bytes", err)
	}
	if list, err := r.Images(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("images: %v, %v", list, err)
	}
	_, free, err := r.ImageDisk()
	if err != nil || free < 6<<20 {
		t.Errorf("%d bytes are free after the pull has failed, %v", free, err)
	}
}

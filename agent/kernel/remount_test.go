package kernel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/internal/testenv/wait"
)

func mounted(t *testing.T, f *fixture) *agentpb.CreateKernelRequest {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	root := t.TempDir()
	for _, d := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.volumes = mount.Volumes{"v": {Path: root}}
	f.restart(t)
	r := request("k", "sleep", "600")
	r.Mounts = []*agentpb.Mount{{Volume: "v", Path: "one", Target: "/one", ReadOnly: true}, {Volume: "v", Path: "two", Target: "/two/"}}
	return r
}

// found waits until a new manager has adopted the container.
func (f *fixture) found(t *testing.T, id string) {
	t.Helper()
	k, err := f.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, func() error {
		_, err := k.Running()
		return err
	})
}

func update(epoch, launch int64, list ...*agentpb.MountUpdate) *agentpb.UpdateMountsRequest {
	return &agentpb.UpdateMountsRequest{Epoch: epoch, KernelId: "k", LaunchEpoch: launch, Mounts: list}
}

func TestUpdateMounts(t *testing.T) {
	f := newFixture(t)
	r := mounted(t, f)
	if err := f.UpdateMounts(t.Context(), update(1, 1)); !errdefs.IsNotFound(err) {
		t.Errorf("without a kernel: %v", err)
	}
	if _, err := f.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.reaches(t, "k", agentpb.KernelState_RUNNING)
	has := func(want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, f.host.Folders("k")); diff != "" {
			t.Error(diff)
		}
	}
	has(map[string]string{"/one": "ro", "/two": "rw"})
	for range 2 {
		f.found(t, "k")
		if err := f.UpdateMounts(t.Context(), update(2, 1, &agentpb.MountUpdate{Target: "/one"}, &agentpb.MountUpdate{Target: "/two", ReadOnly: true})); err != nil {
			t.Fatal(err)
		}
		has(map[string]string{"/one": "rw", "/two": "ro"})
		f.restart(t)
	}
	f.found(t, "k")
	for _, tt := range []struct {
		name    string
		request *agentpb.UpdateMountsRequest
		class   func(error) bool
	}{
		{"a replaced leader", update(1, 1, &agentpb.MountUpdate{Target: "/one", Gone: true}), errdefs.IsFailedPrecondition},
		{"an earlier launch", update(2, 0, &agentpb.MountUpdate{Target: "/one", Gone: true}), errdefs.IsFailedPrecondition},
		{"a later launch", update(2, 2, &agentpb.MountUpdate{Target: "/one", Gone: true}), errdefs.IsNotFound},
		{"no such folder", update(2, 1, &agentpb.MountUpdate{Target: "/none"}), errdefs.IsInvalidArgument},
	} {
		if err := f.UpdateMounts(t.Context(), tt.request); !tt.class(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	has(map[string]string{"/one": "rw", "/two": "ro"})
	if err := f.UpdateMounts(t.Context(), update(2, 1, &agentpb.MountUpdate{Target: "/none", Gone: true}, &agentpb.MountUpdate{Target: "/two", Gone: true})); err != nil {
		t.Fatal(err)
	}
	has(map[string]string{"/one": "rw"})
	if _, err := f.Terminate(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 2, KernelId: "k", GraceMs: 1}); err != nil {
		t.Fatal(err)
	}
	f.ended(t, "k")
	if err := f.UpdateMounts(t.Context(), update(2, 1, &agentpb.MountUpdate{Target: "/one", Gone: true})); err != nil {
		t.Errorf("after its end: %v", err)
	}
	f.nothingHeld(t)
}

// A container that is being created gets the changes that were requested in the meantime, also if
// the agent restarts.
func TestUpdateMountsOfAContainerToBe(t *testing.T) {
	f := newFixture(t)
	r := mounted(t, f)
	r.Environment[fake.CreateDelay] = "1h"
	if _, err := f.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	gone := update(1, 1, &agentpb.MountUpdate{Target: "/one", Gone: true}, &agentpb.MountUpdate{Target: "/two", ReadOnly: true})
	if err := f.UpdateMounts(t.Context(), gone); !errdefs.IsUnavailable(err) {
		t.Fatalf("while the container is created: %v", err)
	}
	k, err := f.Get("k")
	if err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	delete(k.rec.request.Environment, fake.CreateDelay)
	err = k.save()
	k.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	f.reaches(t, "k", agentpb.KernelState_RUNNING)
	if diff := cmp.Diff(map[string]string{"/two": "ro"}, f.host.Folders("k")); diff != "" {
		t.Error(diff)
	}
}

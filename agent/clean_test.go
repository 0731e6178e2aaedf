package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
)

// remains lists the processes, mounts, namespaces and cgroups of this machine whose names contain
// the kernel's id.
func (n *node) remains(t *testing.T, kernel string) (left []string) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(kernel)) {
			left = append(left, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, kernel) {
			left = append(left, line)
		}
	}
	id, err := os.ReadFile(filepath.Join(n.dir, "id"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range containerdtest.Cgroups(t, "/berth/"+strings.TrimSpace(string(id))) {
		if strings.Contains(path, kernel) {
			left = append(left, path)
		}
	}
	for _, pattern := range []string{"netns/*", "runtime/runc/*/*", "kernels/" + kernel + "/work", "kernels/" + kernel + "/etc"} {
		paths, err := filepath.Glob(filepath.Join(n.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.Contains(path, kernel) {
				left = append(left, path)
			}
		}
	}
	return left
}

// TestNothingRemainsAtTheEnd ends many kernels at once. When the agent reports that a kernel has
// exited, nothing of it may remain on the machine.
func TestNothingRemainsAtTheEnd(t *testing.T) {
	n := newNode(t, v1.Config{})
	stop := n.run(t)
	n.pull(t)
	const kernels = 40
	var started []string
	for range kernels {
		r := n.request("sleep", "600")
		r.Allocations[0].Amount, r.Allocations[1].Amount = "0.02", "33554432"
		n.create(t, r)
		started = append(started, r.KernelId)
	}
	for _, id := range started {
		n.wait(t, id, agentpb.KernelState_RUNNING)
	}
	stream, err := n.Watch(t.Context(), &agentpb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range started {
		if _, err := n.TerminateKernel(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 1, KernelId: id, GraceMs: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for exited := map[string]bool{}; len(exited) < kernels; {
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range append(e.GetReport().GetKernels(), e.GetKernel()) {
			if k.GetPhase() != agentpb.KernelState_EXITED || exited[k.KernelId] {
				continue
			}
			exited[k.KernelId] = true
			for _, left := range n.remains(t, k.KernelId) {
				t.Errorf("left of an exited kernel: %s", left)
			}
		}
	}
	stop()
	n.nothingLeft(t)
}

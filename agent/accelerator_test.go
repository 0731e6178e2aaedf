package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/mount"
)

// TestAccelerator runs kernels on fractions of a mock device and kills the agent with SIGKILL in
// between.
func TestAccelerator(t *testing.T) {
	n := newNode(t, v1.Config{})
	path := filepath.Join(t.TempDir(), "mock")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/berthhq/berth/plugins/accelerator/mock").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n.cfg.Plugins = []agent.PluginConfig{{Path: path, Force: true, ConfigJSON: []byte(`{"devices": 1, "device_nodes": true}`)}}
	kill := n.spawn(t)
	n.pull(t)
	var id string
	for _, d := range n.report(t).Devices {
		if d.Plugin == "mock" {
			id = d.Id
		}
	}
	half := func() *agentpb.CreateKernelRequest {
		r := n.request()
		r.Allocations = append(r.Allocations, &agentpb.Allocation{DeviceId: id, Slot: "mock.shares", Amount: "0.5"})
		return r
	}
	first, second, third := half(), half(), half()
	n.start(t, first)
	if out, _ := n.exec(t, first.KernelId, "", "env"); !strings.Contains(out, "MOCK_SHARES=") {
		t.Errorf("environment %q", out)
	}
	if out, _ := n.exec(t, first.KernelId, "", "ls", "/dev"); !strings.Contains(out, "mock0\n") {
		t.Errorf("devices %q", out)
	}
	resources, _ := n.exec(t, first.KernelId, "", "cat", mount.Resources)
	if !strings.HasPrefix(resources, "MOCK_0_DEVICE="+strings.TrimPrefix(id, "mock:")+"\n") || !strings.HasSuffix(resources, "\nMOCK_SHARES="+strings.TrimPrefix(id, "mock:")+":0.5\n") {
		t.Errorf("resources %q", resources)
	}
	if _, code := n.exec(t, first.KernelId, "", "write", mount.Resources, "text"); code == 0 {
		t.Error("a container can write to its resources file")
	}
	kill()

	stop := n.run(t)
	if out, _ := n.exec(t, first.KernelId, "", "ls", "/dev"); !strings.Contains(out, "mock0\n") {
		t.Errorf("devices after a restart %q", out)
	}
	if again, _ := n.exec(t, first.KernelId, "", "cat", mount.Resources); again != resources {
		t.Errorf("resources after a restart %q, before %q", again, resources)
	}
	n.start(t, second)
	if _, err := n.CreateKernel(t.Context(), third); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a third half: %v", err)
	}
	n.measured(t, first.KernelId)
	n.end(t, first.KernelId, time.Second)
	n.start(t, third)
	stop()
	n.nothingLeft(t)
	if work, _ := os.ReadDir(filepath.Join(n.dir, "plugins/work/mock")); len(work) > 0 {
		t.Errorf("work directories left: %v", work)
	}
}

// measured waits until the plugin has reported metrics of a kernel and of its device.
func (n *node) measured(t *testing.T, kernel string) {
	t.Helper()
	stream, err := n.Watch(t.Context(), &agentpb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		node, workload := false, false
		for _, m := range e.GetStats().GetNode() {
			node = node || strings.HasPrefix(m.Name, "mock_")
		}
		for _, k := range e.GetStats().GetKernels() {
			for _, m := range k.Metrics {
				workload = workload || k.KernelId == kernel && strings.HasPrefix(m.Name, "mock_")
			}
		}
		if node && workload {
			return
		}
	}
	t.Error("the plugin's metrics do not arrive")
}

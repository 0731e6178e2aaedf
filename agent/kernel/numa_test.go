package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
)

// TestKernelIsKeptToItsNode allocates cpu and memory of one of two NUMA nodes to a kernel, and
// checks the limits of its container.
func TestKernelIsKeptToItsNode(t *testing.T) {
	if goruntime.NumCPU() < 2 {
		t.Skip("needs two processors")
	}
	f := newFixture(t)
	f.sysfs = t.TempDir()
	for path, text := range map[string]string{
		"devices/system/node/node0/cpulist": "0", "devices/system/node/node0/meminfo": "Node 0 MemTotal: 4194304 kB",
		"devices/system/node/node1/cpulist": fmt.Sprintf("1-%d", goruntime.NumCPU()-1), "devices/system/node/node1/meminfo": "Node 1 MemTotal: 4194304 kB",
		"fs/cgroup/cgroup.controllers": "cpuset cpu memory pids",
	} {
		path = filepath.Join(f.sysfs, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.restart(t)
	r := request("pinned", "sleep", "600")
	r.Allocations = []*agentpb.Allocation{{DeviceId: "cpu-0", Slot: "cpu", Amount: "0.5"}, {DeviceId: "mem-0", Slot: "mem", Amount: "1048576"}}
	if _, err := f.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.reaches(t, "pinned", agentpb.KernelState_RUNNING)
	k, err := f.Get("pinned")
	if err != nil {
		t.Fatal(err)
	}
	got, err := k.resources()
	if err != nil {
		t.Fatal(err)
	}
	got.Pids = 0
	if diff := cmp.Diff(runtime.Resources{MilliCPU: 500, Memory: 1 << 20, CPUs: "0", Mems: "0"}, got); diff != "" {
		t.Error(diff)
	}
	r = request("elsewhere", "sleep", "600") // the allocated devices do not exist on this machine
	if _, err := f.Create(t.Context(), r); err == nil {
		t.Error("it has cpu of no node")
	}
}

package device

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// sysfs creates the /sys of a machine with the given nodes, each with a list of processors and KiB
// of memory.
func sysfs(t *testing.T, cpuset bool, nodes map[int][2]string) string {
	t.Helper()
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n, has := range nodes {
		dir := fmt.Sprintf("devices/system/node/node%d/", n)
		write(dir+"cpulist", has[0]+"\n")
		write(dir+"meminfo", fmt.Sprintf("Node %d MemTotal:       %s kB\nNode %d MemFree:        1 kB\n", n, has[1], n))
	}
	write("devices/system/node/possible", "0-1\n")
	write("fs/cgroup/cgroup.controllers", map[bool]string{true: "cpuset cpu memory pids\n", false: "cpu memory pids\n"}[cpuset])
	return root
}

func TestNodes(t *testing.T) {
	for name, c := range map[string]struct {
		nodes map[int][2]string
		cpus  int
		want  []node
		bad   bool
	}{
		"one":                               {map[int][2]string{0: {"0-3", "1024"}}, 4, nil, false},
		"two":                               {map[int][2]string{1: {"2-3,6-7", "2048"}, 0: {"0-1,4-5", "1024"}}, 8, []node{{0, "0-1,4-5", 4, 1 << 20}, {1, "2-3,6-7", 4, 2 << 20}}, false},
		"ten are in order":                  {map[int][2]string{10: {"1", "1024"}, 9: {"0", "1024"}}, 2, []node{{9, "0", 1, 1 << 20}, {10, "1", 1, 1 << 20}}, false},
		"a node without processors":         {map[int][2]string{0: {"0-1", "1024"}, 1: {"", "4096"}}, 2, []node{{0, "0-1", 2, 1 << 20}, {1, "", 0, 4 << 20}}, false},
		"an empty node":                     {map[int][2]string{0: {"0-1", "1024"}, 1: {"", "0"}}, 2, nil, false},
		"the agent has only two processors": {map[int][2]string{0: {"0-1", "1024"}, 1: {"2-3", "1024"}}, 2, nil, false},
		"an invalid list":                   {map[int][2]string{0: {"0-x", "1024"}, 1: {"2-3", "1024"}}, 4, nil, true},
		"a descending range":                {map[int][2]string{0: {"3-0", "1024"}, 1: {"2-3", "1024"}}, 4, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodes(sysfs(t, true, c.nodes), c.cpus)
			if (err != nil) != c.bad {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(node{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDevicesOfNodes checks a machine of two nodes, one with three quarters of the memory, and a
// machine of one node, whose devices have no numbers.
func TestDevicesOfNodes(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two processors")
	}
	rest := fmt.Sprintf("1-%d", runtime.NumCPU()-1)
	two := map[int][2]string{0: {"0", "1048576"}, 1: {rest, "3145728"}}
	allocations := func(list ...string) (out []*agentpb.Allocation) {
		for i := 0; i < len(list); i += 2 {
			out = append(out, &agentpb.Allocation{DeviceId: list[i], Slot: list[i+1], Amount: "0.1"})
		}
		return out
	}
	m := newManager(t, sysfs(t, true, two), resource.Slots{resource.Mem: 1 << 30})
	var report agentpb.Report
	m.Describe(&report)
	got := map[string]string{}
	for _, d := range report.Devices {
		if d.NumaNode == nil {
			t.Errorf("%s has no node", d.Id)
		}
		for slot, amount := range d.Capacity {
			got[fmt.Sprintf("%s %s on %d", d.Id, slot, d.GetNumaNode())] = amount
		}
	}
	want := map[string]string{
		"cpu-0 cpu on 0": "1", "cpu-1 cpu on 1": fmt.Sprint(runtime.NumCPU() - 1),
		"mem-0 mem on 0": fmt.Sprint(768 << 20), "mem-1 mem on 1": fmt.Sprint(3<<30 - 768<<20),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		allocations []*agentpb.Allocation
		cpus, mems  string
	}{
		"one node":       {allocations("cpu-1", "cpu", "mem-1", "mem"), rest, "1"},
		"memory of both": {allocations("cpu-0", "cpu", "mem-1", "mem", "mem-0", "mem"), "0", "0,1"},
		"of no node":     {allocations("cpu", "cpu", "mem", "mem"), "", ""},
		"cpu of no node": {allocations("cpu", "cpu", "mem-0", "mem"), "", "0"},
		"an accelerator": {allocations("cpu-0", "cpu", "mem-0", "mem", "mock:0", "mock.device"), "0", "0"},
	} {
		if cpus, mems := m.Pin(c.allocations); cpus != c.cpus || mems != c.mems {
			t.Errorf("%s: pinned to %q and %q, want %q and %q", name, cpus, mems, c.cpus, c.mems)
		}
	}
	unable := newManager(t, sysfs(t, false, two), nil)
	if cpus, mems := unable.Pin(allocations("cpu-1", "cpu", "mem-1", "mem")); cpus != "" || mems != "" {
		t.Errorf("pinned to %q and %q without a controller for that", cpus, mems)
	}

	one, before := agentpb.Report{}, agentpb.Report{}
	single := newManager(t, sysfs(t, true, map[int][2]string{0: {fmt.Sprintf("0-%d", runtime.NumCPU()-1), "4194304"}}), nil)
	single.Describe(&one)
	newManager(t, t.TempDir(), nil).Describe(&before)
	if len(one.Devices) != 2 || one.Devices[0].Id != CPU || one.Devices[1].Id != Mem || one.Devices[0].NumaNode != nil || one.String() != before.String() {
		t.Errorf("a machine of one node has %v", one.Devices)
	}
	if cpus, mems := single.Pin(allocations("cpu", "cpu", "mem", "mem")); cpus != "" || mems != "" {
		t.Errorf("pinned to %q and %q on a machine of one node", cpus, mems)
	}
}

func newManager(t *testing.T, sysfs string, reserve resource.Slots) *Manager {
	t.Helper()
	m, err := New(Config{Dir: t.TempDir(), Sysfs: sysfs, Reserve: reserve})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLines checks that the lines of two plugins are merged in order, and are the same after a
// plugin was killed.
func TestLines(t *testing.T) {
	m, _ := withMock(t, `{"devices": 2, "memory_bytes": 1073741824}`)
	r := Request{ID: "k-1", Kernel: "k", Session: "s", Allocations: append(ask("mock:gpu-0", "mock.shares", "0.5"), ask("mock:gpu-1", "mock.shares", "1")...)}
	first, err := m.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"MOCK_0_DEVICE=gpu-0", "MOCK_0_MEMORY=536870912", "MOCK_0_MODEL=Mock Accelerator", "MOCK_0_UNITS=32",
		"MOCK_1_DEVICE=gpu-1", "MOCK_1_MEMORY=1073741824", "MOCK_1_MODEL=Mock Accelerator", "MOCK_1_UNITS=64",
		"MOCK_SHARES=gpu-0:0.5,gpu-1:1",
	}
	if diff := cmp.Diff(want, first.Lines); diff != "" {
		t.Error(diff)
	}
	kill(t, m)
	again, err := m.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Lines, again.Lines); diff != "" {
		t.Errorf("after a restart of the plugin: %s", diff)
	}

	both := lines{}
	for _, row := range []struct {
		plugin, key, value string
		ok                 bool
	}{{"a-b", "A", "1", true}, {"c", "C", "2", true}, {"d", "A", "1", true}, {"e", "A", "3", false}} {
		err := both.add(row.plugin, &acceleratorpb.PrepareResponse{
			Attached:     []*acceleratorpb.AttachedDevice{{DeviceId: "0"}},
			ResourceData: map[string]string{row.key: row.value},
		})
		if (err == nil) != row.ok || err != nil && (!errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), "A was already set by another")) {
			t.Errorf("%s sets %s=%s: %v", row.plugin, row.key, row.value, err)
		}
	}
	if diff := cmp.Diff([]string{"A=1", "A_B_0_DEVICE=0", "C=2", "C_0_DEVICE=0", "D_0_DEVICE=0"}, both.list()[:5]); diff != "" {
		t.Error(diff)
	}
	if none, err := m.Prepare(t.Context(), Request{ID: "k-2", Allocations: ask(CPU, "cpu", "1")}); err != nil || len(none.Lines) != 0 {
		t.Errorf("without devices: %v, %v", none.Lines, err)
	}
}

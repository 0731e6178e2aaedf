package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

func newMachine(t *testing.T, config string) (*fixture.Tree, *machine) {
	t.Helper()
	tree := fixturetest.Start(t, "gaudi3-8")
	return tree, bench.Open(t, tree.Roots(), config)
}

func edit(t *testing.T, m *machine, work string, ids ...string) *pb.PrepareResponse {
	t.Helper()
	s := bench.Scan(t, m)
	request := drivertest.Request(t, s, drivertest.Whole(drivertest.Pick(t, s, ids...)...)...)
	request.WorkDir = work
	return drivertest.Edit(t, m, request)
}

const (
	board = "sys/devices/pci0000:15/0000:19:00.0/"
	first = "0000:19:00.0" // on the bus; its number is 7
)

func TestDevicesAndWhatTheyAreNot(t *testing.T) {
	tests := map[string]struct {
		file, content string
		want          string // reason, "" = allocatable
	}{
		"as it is":         {"numa_node", "0\n", ""},
		"gaudi 2":          {"device", "0x1020\n", ""},
		"the first gaudi":  {"device", "0x1000\n", "older than Gaudi 2"},
		"another product":  {"device", "0x2000\n", "neither Gaudi 2 nor Gaudi 3"},
		"no number":        {"device", "\xff\x00", "cannot be read"},
		"in reset":         {"status", "In reset after device release\n", "In reset"},
		"odd status":       {"status", "Dancing\n", "Dancing"},
		"module of others": {"module_id", "3\n", "2 devices report that module 3"},
		"module unknown":   {"module_id", "x\n", ""},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			tree, m := newMachine(t, "")
			if err := tree.Write(board+c.file, c.content); err != nil {
				t.Fatal(err)
			}
			all := bench.Devices(t, m)
			drivertest.Judged(t, all[first], c.want)
			drivertest.Judged(t, all["0000:34:00.0"], "")
		})
	}
}

func TestWithoutDriver(t *testing.T) {
	tree, m := newMachine(t, "")
	for _, gone := range []string{board + "driver", board + "accel"} {
		if err := tree.Remove(gone); err != nil {
			t.Fatal(err)
		}
	}
	drivertest.Judged(t, bench.Devices(t, m)[first], "habanalabs is not bound to it, but none")
}

func TestContainerGetsItsDevicesAndTheirNetwork(t *testing.T) {
	tree, m := newMachine(t, "")
	work := filepath.Join(t.TempDir(), "work")
	r := edit(t, m, work, first, "0000:b4:00.0")
	want := []string{
		"/dev/accel/accel0", "/dev/accel/accel_controlD0", "/dev/infiniband/uverbs11", "/dev/accel/accel7", "/dev/accel/accel_controlD7", "/dev/infiniband/uverbs4",
	}
	if nodes := drivertest.Nodes(r); !slices.Equal(nodes, want) {
		t.Errorf("nodes %v, want %v", nodes, want)
	}
	if e := r.GetEdits().GetEnv(); e["HABANA_VISIBLE_DEVICES"] != "0,7" || e["HABANA_VISIBLE_MODULES"] != "5,2" {
		t.Errorf("env %v", e)
	}
	if r.GetAttached()[1].GetDeviceId() != first {
		t.Errorf("attached %v", r.GetAttached())
	}
	var table struct {
		Info []ports `json:"MAC_ADDR_INFO"`
	}
	text, err := os.ReadFile(filepath.Join(work, "macAddrInfo.json"))
	if err == nil {
		err = json.Unmarshal(text, &table)
	}
	if err != nil || len(table.Info) != 2 || table.Info[1].Address != first || len(table.Info[1].MACs) != 24 ||
		table.Info[1].MACs[22] != "b0:fd:0b:d5:00:65" || table.Info[1].MACs[0] != inner {
		t.Errorf("%v, %s", err, text)
	}
	if n := len(r.GetEdits().GetMounts()); n != 2 {
		t.Errorf("%d mounts, want the table and gaudinet.json", n)
	}
	if err := tree.Write("root/etc/habanalabs/gaudinet.json", "{"); err != nil {
		t.Fatal(err)
	}
	if mounts := edit(t, m, work, first).GetEdits().GetMounts(); len(mounts) != 1 {
		t.Errorf("a broken gaudinet.json goes in: %v", mounts)
	}
	for _, check := range m.Check(t.Context()) {
		if check.GetOk() == (check.GetName() == "gaudinet") {
			t.Errorf("%v", check)
		}
	}
	_, m = newMachine(t, `{"scale_out": false, "sys_nice": true}`)
	e := edit(t, m, work, first).GetEdits()
	if len(e.GetMounts()) > 0 || len(e.GetDeviceNodes()) != 2 || !slices.Equal(e.GetCapabilities(), []string{"CAP_SYS_NICE"}) {
		t.Errorf("without its network: %v", e)
	}
}

func TestWholeBoardNeedsNoModules(t *testing.T) {
	_, m := newMachine(t, "")
	all := bench.Devices(t, m)
	if e := edit(t, m, t.TempDir(), slices.Collect(maps.Keys(all))...).GetEdits().GetEnv(); e["HABANA_VISIBLE_MODULES"] != "" || e["HABANA_VISIBLE_DEVICES"] != "0,1,2,3,4,5,6,7" {
		t.Errorf("%v", e)
	}
}

func TestMemoryOfContainers(t *testing.T) {
	tree, m := newMachine(t, "")
	s := bench.Scan(t, m)
	set := &pb.WorkloadSet{Workloads: []*pb.Workload{{AllocationId: "a", Allocations: []*pb.Allocation{
		{DeviceId: "0000:1a:00.0"}, {DeviceId: "0000:33:00.0"},
	}}}}
	sum := func() (n float64, quality pb.Metric_Quality) {
		for _, metric := range m.SampleWorkloads(t.Context(), s, set)[0].GetMetrics() {
			if metric.GetName() == "gaudi_mem" {
				n, quality = n+metric.GetValue(), metric.GetQuality()
			}
		}
		return n, quality
	}
	if n, quality := sum(); n != (672*2+12000+24000)<<20 || quality != pb.Metric_ATTRIBUTED {
		t.Errorf("%v, %v", n, quality)
	}
	spoil := map[string]func() error{
		"fails":  func() error { return tree.Fail("hl-smi", 3, "no device") },
		"floods": func() error { return tree.Flood("hl-smi") },
		"hangs":  func() error { return tree.Hang("hl-smi") },
	}
	for name, do := range spoil {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if n, quality := sum(); n != 0 || quality != pb.Metric_UNAVAILABLE {
			t.Errorf("hl-smi %s: %v, %v", name, n, quality)
		}
		if all := bench.Devices(t, m); !all[first].GetAllocatable() {
			t.Errorf("hl-smi %s: %v", name, all[first])
		}
	}
}

func TestSettings(t *testing.T) {
	bench.Refuses(t, map[string]string{`{"scale_out": "yes"}`: "scale_out", `{"macvlan": true}`: "macvlan"})
}

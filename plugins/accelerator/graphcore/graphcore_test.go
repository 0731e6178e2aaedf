package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

// The second IPU of the IPU-Machine, and the IPU of a card.
const remote, local = "0020.0002.8203321/1", "0063.0063.822391/0"

func edit(t *testing.T, m *machine, dir string, ids ...string) (*pb.PrepareResponse, error) {
	t.Helper()
	s := bench.Scan(t, m)
	var allocations []*pb.Allocation
	for _, id := range ids {
		allocations = append(allocations, &pb.Allocation{Slot: slot, DeviceId: id, Amount: "1"})
	}
	r := drivertest.Request(t, s, allocations...)
	r.WorkDir = dir
	return m.Edit(t.Context(), r)
}

func TestDevicesAreDescribed(t *testing.T) {
	s := bench.Scan(t, bench.Open(t, fixturetest.Start(t, "ipu-pod4").Roots(), ""))
	all := driver.ByID(s)
	if d := all[remote]; d.GetModel() != "IPU-M2000" || d.GetMemoryBytes() != 900<<20 || d.GetProcessingUnits() != 1472 || d.GetAttributes()["ipu_machine"] != "10.1.5.10" ||
		!slices.Equal(d.GetGroups(), []string{"ipu-machine-10.1.5.10"}) || d.NumaNode != nil || d.GetPciAddress() != "" {
		t.Errorf("%v", d)
	}
	if d := all[local]; d.GetModel() != "C600" || d.GetPciAddress() != "0000:41:00.0" || d.GetNumaNode() != 0 || d.GetAttributes()["firmware"] != "2.6.8" {
		t.Errorf("%v", d)
	}
	for id, why := range map[string]string{"0011.0002.1234/0": "too old", "0000:81:00.0": "does not list it"} {
		if d := all[id]; d.GetAllocatable() || !strings.Contains(strings.Join(d.GetRejectReasons(), ";"), why) {
			t.Errorf("%s: %v", id, d)
		}
	}
	if len(s.GetLinks()) != 6 { // one for each pair of four IPUs
		t.Errorf("%v", s.GetLinks())
	}
	if all := bench.Devices(t, bench.Open(t, fixturetest.Start(t, "ipu-pod4").Roots(), `{"first_generation": true}`)); !all["0011.0002.1234/0"].GetAllocatable() {
		t.Errorf("%v", all["0011.0002.1234/0"])
	}
}

func TestWhatBreaksCostsItsOwn(t *testing.T) {
	const conf = "root/etc/ipuof.conf.d/pod4.conf"
	entry := func(id int) string {
		return fmt.Sprintf(`{"ip": "10.1.5.10", "device_id": %d, "port": 50010}`, id)
	}
	for name, row := range map[string]struct {
		spoil                 func(*fixture.Tree) error
		remoteWhy, localWhy   string // "" = still allocatable
		neighbourStillAllowed bool
	}{
		"no IPUoF file": {func(t *fixture.Tree) error { return t.Remove(conf) }, "IPUoF file", "", false},
		"no JSON":       {func(t *fixture.Tree) error { return t.Write(conf, "[") }, "not a JSON object", "", false},
		"no devices":    {func(t *fixture.Tree) error { return t.Write(conf, `{"devices": {}}`) }, "lists no devices", "", false},
		"no address":    {func(t *fixture.Tree) error { return t.Write(conf, `{"devices": [{"device_id": 1}]}`) }, "devices[0] lacks ip", "", false},
		"not an entry":  {func(t *fixture.Tree) error { return t.Write(conf, `{"devices": [`+entry(0)+`]}`) }, "no entry of IPU 1", "", true},
		"gc-monitor":    {func(t *fixture.Tree) error { return t.Fail("gc-monitor", 1, "no server") }, "no server", "", false},
		"no node":       {func(t *fixture.Tree) error { return errors.Join(t.Remove("dev/ipu4"), t.Remove("dev/ipu4_ex")) }, "", "device file /dev/ipu4 does not exist", true},
		"node is file":  {func(t *fixture.Tree) error { return t.Write("dev/ipu4", "x") }, "", "is not a device", true},
		"no card":       {func(t *fixture.Tree) error { return t.Remove("sys/bus/pci/devices/0000:41:00.0") }, "", "no card of Graphcore", true},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fixturetest.Start(t, "ipu-pod4")
			if err := row.spoil(tree); err != nil {
				t.Fatal(err)
			}
			all := bench.Devices(t, bench.Open(t, tree.Roots(), ""))
			for id, why := range map[string]string{remote: row.remoteWhy, local: row.localWhy} {
				if got := strings.Join(all[id].GetRejectReasons(), "; "); (got == "") != (why == "") || !strings.Contains(got, why) {
					t.Errorf("%s: %q, want %q", id, got, why)
				}
			}
			if got := all["0020.0002.8203321/0"].GetAllocatable(); got != row.neighbourStillAllowed {
				t.Errorf("the first IPU: %v", got)
			}
		})
	}
}

// TestWithoutPrograms checks that devices on the bus are shown but not allocatable.
func TestWithoutPrograms(t *testing.T) {
	tree := fixturetest.Start(t, "ipu-pod4")
	if err := os.Remove(filepath.Join(tree.Roots().GetPath()[0], "gc-inventory")); err != nil {
		t.Fatal(err)
	}
	s := bench.Scan(t, bench.Open(t, tree.Roots(), ""))
	all := driver.ByID(s)
	if len(s.GetDevices()) != 3 || !strings.Contains(all["0000:41:00.0"].GetRejectReasons()[0], "gc-inventory: not installed") {
		t.Errorf("%v", s.GetDevices())
	}
}

// TestNonsenseIsBounded checks that groups that are larger than any machine get no links.
func TestNonsenseIsBounded(t *testing.T) {
	var all []*pb.Device
	for i := range accelerator.MaxDevices {
		all = append(all, &pb.Device{Id: fmt.Sprint("ipu-", i), Groups: []string{"one"}})
	}
	if n := len(links(all)); n != 0 {
		t.Errorf("%d links", n)
	}
	if n := len(links(all[:4])); n != 6 {
		t.Errorf("%d links of four", n)
	}
}

func TestRemoteIPUs(t *testing.T) {
	dir := t.TempDir()
	out, err := edit(t, bench.Open(t, fixturetest.Start(t, "ipu-pod4").Roots(), ""), dir, "0020.0002.8203321/3", remote)
	if err != nil {
		t.Fatal(err)
	}
	e := out.GetEdits()
	var nodes []string
	for _, n := range e.DeviceNodes {
		nodes = append(nodes, n.Path)
	}
	if want := []string{"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0"}; !slices.Equal(nodes, want) {
		t.Errorf("nodes are %q", nodes)
	}
	if len(e.Mounts) != 1 || e.Mounts[0].Target != "/etc/ipuof.conf.d" || e.Mounts[0].Writable || e.Env["IPUOF_CONFIG_PATH"] != "/etc/ipuof.conf.d/berth.conf" {
		t.Errorf("%v", e)
	}
	if len(e.Capabilities) > 0 || e.HostIpc || e.Rlimits[0].Name != "memlock" {
		t.Errorf("%v", e)
	}
	text, err := os.ReadFile(filepath.Join(e.Mounts[0].Source, "berth.conf"))
	if err != nil {
		t.Fatal(err)
	}
	var conf struct {
		Attributes map[string]string `json:"attributes"`
		Devices    []struct {
			ID   int `json:"device_id"`
			Port int `json:"port"`
		} `json:"devices"`
	}
	if err := json.Unmarshal(text, &conf); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(conf); got != "{map[IPUoF:PartitionName:pod4 IPUoF:Version:1] [{1 50010} {3 50010}]}" {
		t.Errorf("the container's file: %s", got)
	}
	if _, err := edit(t, bench.Open(t, fixturetest.Start(t, "ipu-pod4").Roots(), ""), "work", remote); err == nil || !strings.Contains(err.Error(), "work_dir") {
		t.Errorf("relative work_dir: %v", err)
	}
}

// Two IPU-Machines use the same numbers for their IPUs.
func TestTheOtherMachinesIPUIsNotGiven(t *testing.T) {
	tree := fixturetest.Start(t, "ipu-pod4")
	const conf = `{"devices": [{"ip": "10.1.5.11", "device_id": 1, "port": 1}, {"ip": "10.1.5.10", "device_id": 1, "port": 2}]}`
	if err := tree.Write("root/etc/ipuof.conf.d/pod4.conf", conf); err != nil {
		t.Fatal(err)
	}
	out, err := edit(t, bench.Open(t, tree.Roots(), ""), t.TempDir(), remote)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out.GetEdits().Mounts[0].Source, "berth.conf"))
	if err != nil || !strings.Contains(string(text), "10.1.5.10") || strings.Contains(string(text), "10.1.5.11") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCards(t *testing.T) {
	out, err := edit(t, bench.Open(t, fixturetest.Start(t, "ipu-pod4").Roots(), `{"ipc_lock": true, "host_ipc": true}`), "", local)
	if err != nil {
		t.Fatal(err)
	}
	e := out.GetEdits()
	if len(e.DeviceNodes) != 2 || e.DeviceNodes[0].Path != "/dev/ipu4" || e.DeviceNodes[1].Path != "/dev/ipu4_ex" || len(e.Mounts)+len(e.Env) > 0 {
		t.Errorf("%v", e)
	}
	if !e.HostIpc || !slices.Equal(e.Capabilities, []string{"CAP_IPC_LOCK"}) {
		t.Errorf("%v", e)
	}
}

func TestMeasurements(t *testing.T) {
	tree := fixturetest.Start(t, "ipu-pod4")
	m := bench.Open(t, tree.Roots(), "")
	s := bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{
		"ipu_util " + remote: "81.25 of 100 MEASURED", "ipu_power " + remote: "51.2 MEASURED", "ipu_temperature " + remote: "31.5 MEASURED",
		"ipu_host_mem " + remote: "1.048576e+06 of 1.6911433728e+10 MEASURED", "ipu_power " + local: "0 UNAVAILABLE", "ipu_clock " + local: "20 MEASURED",
	})
	if err := tree.Fail("gc-inventory", 1, ""); err != nil {
		t.Fatal(err)
	}
	for _, x := range m.Sample(t.Context(), s) {
		if x.GetQuality() != pb.Metric_UNAVAILABLE {
			t.Errorf("gc-inventory fails: %v", x)
		}
	}
}

// A value above the maximum is not reported as a measurement.
func TestBusierThanPossible(t *testing.T) {
	r := readings{ipus: map[string]ipu{"a": {"ipu utilisation": "104.2%"}}}
	if m := r.measure(&pb.Device{Id: "a"})[0]; m.GetName() != "ipu_util" || m.GetValue() != 0 || m.GetQuality() != pb.Metric_UNAVAILABLE {
		t.Errorf("%v", m)
	}
}

// TestWhoseItIs checks the attribution by the process that gc-inventory reports.
func TestWhoseItIs(t *testing.T) {
	m := bench.Open(t, fixturetest.Start(t, "ipu-pod4").Roots(), "")
	s := bench.Scan(t, m)
	for _, row := range []struct {
		pids    []int32
		quality pb.Metric_Quality
		of      int
	}{{[]int32{12, 4711}, pb.Metric_MEASURED, 1}, {[]int32{12}, pb.Metric_ATTRIBUTED, 0}, {nil, pb.Metric_ATTRIBUTED, 0}} {
		w := m.SampleWorkloads(t.Context(), s, &pb.WorkloadSet{PerProcess: true, Workloads: []*pb.Workload{{
			AllocationId: "a", HostPids: row.pids, Allocations: []*pb.Allocation{{Slot: slot, DeviceId: remote, Amount: "1"}},
		}}})[0]
		if w.Metrics[0].GetName() != "ipu_util" || w.Metrics[0].GetQuality() != row.quality || len(w.Processes) != row.of {
			t.Errorf("%v: %v", row.pids, w)
		}
		if row.of > 0 && w.Processes[0].GetHostPid() != 4711 {
			t.Errorf("%v", w.Processes)
		}
	}
}

func TestBadSettingsNameTheField(t *testing.T) {
	bench.Refuses(t, map[string]string{`{"speed": 1}`: "speed", `{"ipuof_config": ""}`: "ipuof_config", `{"ipuof_config": "/etc/../x"}`: "ipuof_config"})
}

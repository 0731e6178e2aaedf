package main

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

// open opens the machine with a state directory.
func open(t *testing.T, tree *fixture.Tree, state, config string) *machine {
	t.Helper()
	roots := tree.Roots()
	roots.State = state
	return bench.Open(t, roots, config)
}

// request returns a request for the devices with these indexes in the snapshot.
func request(t *testing.T, s *pb.DeviceSnapshot, id string, devices ...int) *driver.Request {
	t.Helper()
	var given []*pb.Device
	for _, i := range devices {
		given = append(given, s.GetDevices()[i])
	}
	r := drivertest.Request(t, s, drivertest.Whole(given...)...)
	r.AllocationId = id
	return r
}

func TestDevicesOfBothVersionsOfTheSDK(t *testing.T) {
	atom := bench.Scan(t, open(t, fixturetest.Start(t, "atom-4"), t.TempDir(), "")).GetDevices()
	if d := atom[0]; d.GetModel() != "Rebellions ATOM" || d.GetPciAddress() != "0000:1b:00.0" || d.GetPcieRoot() != "pci0000:1a" ||
		d.GetNumaNode() != 0 || d.NumaNode == nil || d.GetMemoryBytes() != 16875782144 || d.GetProcessingUnits() != 1 {
		t.Errorf("SDK 1: %v", d)
	}
	if d := atom[1]; d.GetId() != "0000:1c:00.0" || !d.GetAllocatable() {
		t.Errorf("without uuid: %v", d)
	}
	if d := atom[2]; d.NumaNode != nil {
		t.Errorf("numa node -1: %v", d)
	}
	if d := atom[4]; d.GetAllocatable() || !strings.Contains(d.GetRejectReasons()[0], "REBEL") {
		t.Errorf("REBEL: %v", d)
	}
	cards := bench.Scan(t, open(t, fixturetest.Start(t, "atom-max-2x"), t.TempDir(), "")).GetDevices()
	if d := cards[0]; d.GetModel() != "Rebellions ATOM Max" || d.GetId() != "MAX25000" || d.GetMemoryBytes() != 64<<30 || d.GetProcessingUnits() != 4 ||
		d.GetAttributes()["npus"] != "0000:21:00.0,0000:22:00.0,0000:23:00.0,0000:24:00.0" {
		t.Errorf("SDK 2: %v", d)
	}
}

// said returns the snapshot of a machine whose rbln-smi prints the text.
func said(t *testing.T, text string) *pb.DeviceSnapshot {
	t.Helper()
	tree := fixturetest.Start(t, "atom-4")
	tree.Machine.Changes["say"] = fixture.Change{Commands: map[string][]fixture.Case{"rbln-smi": {{Stdout: text}}}}
	if err := tree.Change("say"); err != nil {
		t.Fatal(err)
	}
	return bench.Scan(t, open(t, tree, t.TempDir(), ""))
}

func TestRejections(t *testing.T) {
	const good = `{"npu": 0, "name": "RBLN-CA22", "uuid": "u-1", "device": "rbln0", "pci": {"bus_id": "0000:1b:00.0"}, "memory": {"total": "1GiB"}}`
	for name, row := range map[string]struct{ from, to, reason string }{
		"unknown model":  {"RBLN-CA22", "RBLN-XX1", `model "RBLN-XX1" is unknown`},
		"no model":       {"RBLN-CA22", "", `model "" is unknown`},
		"node elsewhere": {`"rbln0"`, `"../mem"`, `device of 0000:1b:00.0 is "../mem"`},
		"no node":        {`"rbln0"`, `"rbln77"`, "/dev/rbln77: no such file"},
		"no memory":      {"1GiB", "lots", `memory.total of 0000:1b:00.0 is "lots"`},
		"bad state":      {`"npu": 0`, `"npu": 0, "status": "Error"`, "is in state Error"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(strings.Replace(good, "u-1", "u-2", 1), row.from, row.to, 1)
			s := said(t, `{"devices": [`+good+`, `+bad+`]}`)
			if d := s.GetDevices()[0]; !d.GetAllocatable() || d.GetCapacity()["atom-plus.device"] != "1" {
				t.Errorf("the other suffers: %v", d)
			}
			drivertest.Judged(t, s.GetDevices()[1], row.reason)
		})
	}
	// NPUs on the bus that are not in the output are shown as well.
	if s := said(t, `{"devices": []}`); len(s.GetDevices()) != 5 || s.GetDevices()[0].GetRejectReasons()[0] != "rbln-smi does not list it" {
		t.Errorf("%v", s)
	}
}

func TestWithoutTheProgram(t *testing.T) {
	roots := fixturetest.Start(t, "atom-4").Roots()
	roots.Path = []string{t.TempDir()}
	if s := bench.Scan(t, bench.Open(t, roots, "")); len(s.GetDevices()) != 5 || s.GetDevices()[0].GetRejectReasons()[0] != "rbln-smi is not installed" {
		t.Errorf("%v", s)
	}
}

func TestMetrics(t *testing.T) {
	m := open(t, fixturetest.Start(t, "atom-4"), t.TempDir(), "")
	s := bench.Scan(t, m)
	busy := s.GetDevices()[3].GetId()
	bench.Measures(t, m, s, map[string]string{
		"rebellions_mem " + busy: "4.294967296e+09 of 1.6875782144e+10 MEASURED", "rebellions_util " + busy: "73.5 of 100 MEASURED",
		"rebellions_power " + busy: "19.3 MEASURED", "rebellions_temperature " + busy: "33 MEASURED",
	})
	w := m.SampleWorkloads(t.Context(), s, &pb.WorkloadSet{PerProcess: true, Workloads: []*pb.Workload{{
		AllocationId: "a", HostPids: []int32{1, 4242, 4243}, Allocations: []*pb.Allocation{{DeviceId: busy}},
	}, {
		AllocationId: "b", HostPids: []int32{9}, Allocations: []*pb.Allocation{{DeviceId: busy}},
	}}})
	memory := func(list []*pb.Metric) (float64, pb.Metric_Quality) {
		for _, metric := range list {
			if metric.GetName() == key+"_mem" {
				return metric.GetValue(), metric.GetQuality()
			}
		}
		return -1, 0
	}
	if v, q := memory(w[0].GetMetrics()); v != 4<<30 || q != pb.Metric_MEASURED || len(w[0].GetProcesses()) != 2 {
		t.Errorf("first workload: %v", w[0])
	}
	if v, _ := memory(w[0].GetProcesses()[0].GetMetrics()); v != 3<<30 {
		t.Errorf("first process: %v", w[0].GetProcesses()[0])
	}
	if v, _ := memory(w[1].GetMetrics()); v != 0 || len(w[1].GetProcesses()) != 0 {
		t.Errorf("second workload: %v", w[1])
	}
	// A card's metrics combine those of its NPUs.
	m = open(t, fixturetest.Start(t, "atom-max-2x"), t.TempDir(), "")
	s = bench.Scan(t, m)
	card := s.GetDevices()[0].GetId()
	bench.Measures(t, m, s, map[string]string{
		"rebellions_mem " + card: "4.294967296e+09 of 6.8719476736e+10 MEASURED", "rebellions_util " + card: "15 of 100 MEASURED",
		"rebellions_power " + card: "61.5 MEASURED", "rebellions_temperature " + card: "43 MEASURED",
	})
}

func TestBadSettings(t *testing.T) {
	bench.Refuses(t, map[string]string{
		`{"lock_file": "x"}`:           `lock_file: "x" must be an absolute path`,
		`{"lock_file": "/a/../b"}`:     "lock_file",
		`{"bad_status": [""]}`:         "bad_status: 1 states, at most 32, none empty",
		`{"group_singles": true}`:      "group_singles",
		`{"bad_status": "not a list"}`: "bad_status",
	})
}

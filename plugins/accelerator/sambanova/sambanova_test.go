package main

import (
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

// configured opens the machine with the settings in its file.
func configured(t *testing.T, tree *fixture.Tree) *machine {
	t.Helper()
	return bench.Open(t, tree.Roots(), string(tree.Config()))
}

// The RDU in use, an idle one, and the one with a hanging tile.
const busy, idle, hung = "205057B469B35800", "205057B469B35801", "205057B469B35831"

func reasons(d *pb.Device) string { return strings.Join(d.GetRejectReasons(), "; ") }

func TestRDUsAndTiles(t *testing.T) {
	all := bench.Devices(t, configured(t, fixturetest.Start(t, "sn30-8")))
	d := all[busy]
	if d.GetModel() != "SN30-8 RDU" || d.GetMemoryBytes() != 1<<40 || d.GetProcessingUnits() != 8 || d.GetAttributes()["place"] != "XRDU_0/RDU_0" ||
		fmt.Sprint(d.GetConsumes()[0].GetAmounts()) != "map[tiles:8]" || !slices.Equal(d.GetGroups(), []string{"XRDU_0"}) {
		t.Errorf("%v", d)
	}
	if d := all[busy+"/TILE_7"]; d.GetParentId() != busy || fmt.Sprint(d.GetCapacity(), d.GetConsumes()[0].GetAmounts()) != "map[sn-rdu.tile:1] map[tiles:1]" {
		t.Errorf("%v", d)
	}
	if d := all[hung]; d.GetAllocatable() || d.GetHealth() != pb.Health_HEALTH_DEGRADED || !strings.Contains(reasons(d), "the state hung of TILE_5") {
		t.Errorf("%v", d)
	}
	if d := all[hung+"/TILE_5"]; d.GetAllocatable() || d.GetHealth() != pb.Health_HEALTH_UNHEALTHY {
		t.Errorf("%v", d)
	}
	if d := all[hung+"/TILE_4"]; !d.GetAllocatable() || d.GetHealth() != pb.Health_HEALTH_HEALTHY {
		t.Errorf("%v", d)
	}
	if s := bench.Scan(t, bench.Open(t, fixturetest.Start(t, "sn30-8").Roots(), `{"snml": ""}`)); len(s.GetDevices()) != 8 || len(s.GetSlots()) != 1 || len(s.GetLinks()) != 4 {
		t.Errorf("without tiles: %d devices, %d slots, %d links", len(s.GetDevices()), len(s.GetSlots()), len(s.GetLinks()))
	}
}

func TestOrderAndNames(t *testing.T) {
	s := bench.Scan(t, configured(t, fixturetest.Start(t, "sn40l-16")))
	var got []string
	for _, d := range s.GetDevices() {
		got = append(got, d.GetId())
	}
	if want := []string{"40C0FFEE09", "XRDU_5/RDU_0", "XRDU_5/RDU_1", "40C0FFEE12"}; !slices.Equal(got[9:13], want) {
		t.Errorf("%q", got)
	}
	if last := s.GetDevices()[15]; !strings.Contains(reasons(last), "xrdu7_rdu1") || !strings.Contains(reasons(last), "setting nodes") {
		t.Errorf("%v", last)
	}
}

// TestPlatform checks that SNML is queried first, and snconfig if SNML does not return the
// platform.
func TestPlatform(t *testing.T) {
	const old = "Platform Name: DataScale SN10-8\nXRDU Name: XRDU_0\nRDU name: RDU_0\nTILE Name: TILE_0\n"
	for name, row := range map[string]struct {
		text, config string
		fail         bool // SNML fails
		platform     string
		reason       string
	}{
		"the platform of SNML takes precedence": {text: old, platform: "DataScale SN30-8"},
		"SNML fails":                            {text: old, fail: true, platform: "DataScale SN10-8", reason: `"DataScale SN10-8" is not one of`},
		"SNML is not asked":                     {text: old, config: `{"snml": ""}`, platform: "DataScale SN10-8", reason: "is not one of"},
		"neither knows":                         {text: strings.Replace(old, "Platform", "Other", 1), config: `{"snml": ""}`, reason: "neither SNML nor snconfig reports the platform"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fixturetest.Start(t, "sn30-8")
			replace(t, tree, row.text)
			if row.fail {
				if err := tree.Fail("snml", 1, ""); err != nil {
					t.Fatal(err)
				}
			}
			m := configured(t, tree)
			if row.config != "" {
				m = bench.Open(t, tree.Roots(), row.config)
			}
			s := bench.Scan(t, m)
			all := driver.ByID(s)
			d := all["XRDU_0/RDU_0"]
			if s.GetDriverInfo()["platform"] != row.platform || d.GetAllocatable() != (row.reason == "") || !strings.Contains(reasons(d), row.reason) {
				t.Errorf("platform %q, %v", s.GetDriverInfo()["platform"], d)
			}
		})
	}
}

// replace makes snconfig print a text for any arguments.
func replace(t *testing.T, tree *fixture.Tree, text string) {
	t.Helper()
	program := filepath.Join(tree.Roots().GetPath()[0], "snconfig")
	if err := os.WriteFile(program+".text", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec cat \"$0.text\"\n"), 0o700); err != nil { //nolint:gosec // must be executable
		t.Fatal(err)
	}
}

func TestTextIsReadLeniently(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"nothing":         {"", "[]"},
		"garbage":         {"\xff\xfe:\x00\nRDU name: RDU_0\nSize: 1 GB\nXRDU Name: XRDU_x\nRDU name: RDU_1\n", "[]"},
		"no tiles":        {"XRDU Name: XRDU_2\nRDU name: RDU_1\nSerial Number: A1\n", "[2/1 A1 0 map[]]"},
		"serials of DIMM": {"XRDU Name: XRDU_0\nRDU name: RDU_0\nTILE Name: TILE_0\nSerial Number: T0\nDIMM Name: DIMM_0\nSize: 64.0 GB\nSerial Number: D0\n", "[0/0  68719476736 map[0:]]"},
		"absurd memory":   {"XRDU Name: XRDU_0\nRDU name: RDU_0\nDIMM Name: DIMM_0\nSize: 9999999999 GB\n", "[0/0  0 map[]]"},
		"states":          {"XRDU Name: XRDU_0\nRDU name: RDU_0\nTILE Name: TILE_3\nStatus: Hung\n", "[0/0  0 map[3:hung]]"},
	} {
		s := &system{}
		s.read(row.text)
		list := []string{}
		for _, r := range s.rdus {
			list = append(list, fmt.Sprintf("%d/%d %s %d %v", r.xrdu, r.number, r.serial, r.memory, r.tiles))
		}
		if got := fmt.Sprint(list); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// TestNonsenseIsBounded checks that an impossible output takes little time and allocates no device
// twice.
func TestNonsenseIsBounded(t *testing.T) {
	var text strings.Builder
	for x := range 1000 {
		fmt.Fprintf(&text, "XRDU Name: XRDU_%d\nRDU name: RDU_0\nRDU name: RDU_1\nRDU name: RDU_2\nTILE Name: TILE_0\n", x)
	}
	tree := fixturetest.Start(t, "sn30-8")
	replace(t, tree, text.String())
	s, err := bench.Open(t, tree.Roots(), `{"snml": ""}`).Scan(t.Context())
	if err != nil || len(s.GetDevices()) != accelerator.MaxDevices || len(s.GetLinks()) > accelerator.MaxDevices {
		t.Fatalf("%d devices, %d links, %v", len(s.GetDevices()), len(s.GetLinks()), err)
	}
	if d := s.GetDevices()[2]; !strings.Contains(reasons(d), "RDU_2 is not known") {
		t.Errorf("%v", d)
	}
}

// TestWithoutSnconfig checks that the tiles of sntilestat are listed, and nothing without either
// program.
func TestWithoutSnconfig(t *testing.T) {
	tree := fixturetest.Start(t, "sn30-8")
	m := configured(t, tree)
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(tree.Roots().GetPath()[0], name)); err != nil {
			t.Fatal(err)
		}
	}
	remove("snconfig")
	if all := bench.Devices(t, m); len(all) != 72 || !all["XRDU_3/RDU_1/TILE_7"].GetAllocatable() {
		t.Errorf("%d devices, %v", len(all), all["XRDU_3/RDU_1/TILE_7"])
	}
	if err := tree.Fail("sntilestat", 1, "no driver"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Scan(t.Context()); err == nil || !strings.Contains(err.Error(), "no driver") {
		t.Errorf("sntilestat fails: %v", err)
	}
	remove("sntilestat")
	if s := bench.Scan(t, m); len(s.GetDevices()) != 0 {
		t.Errorf("%v", s.GetDevices())
	}
}

func TestEdits(t *testing.T) {
	for _, row := range []struct {
		machine, slot string
		ids           []string
		nodes, env    string
	}{
		{"sn30-8", whole, []string{"205057B469B35810"}, "[/dev/rdu2]", "/XRDU_1/RDU_0"},
		{"sn30-8", part, []string{busy + "/TILE_0", busy + "/TILE_1", idle + "/TILE_0"}, "[/dev/rdu0 /dev/rdu1]", "/XRDU_0/RDU_0/TILE_0,/XRDU_0/RDU_0/TILE_1,/XRDU_0/RDU_1/TILE_0"},
		{"sn40l-16", whole, []string{"XRDU_5/RDU_0"}, "[/dev/sambanova/xrdu5_rdu0 /dev/sambanova/control]", "/XRDU_5/RDU_0"},
	} {
		m := configured(t, fixturetest.Start(t, row.machine))
		s := bench.Scan(t, m)
		var allocations []*pb.Allocation
		for _, id := range row.ids {
			allocations = append(allocations, &pb.Allocation{Slot: row.slot, DeviceId: id, Amount: "1"})
		}
		out := drivertest.Edit(t, m, drivertest.Request(t, s, allocations...))
		e := out.GetEdits()
		if nodes := drivertest.Nodes(out); fmt.Sprint(nodes) != row.nodes || e.Env["SN_RDU_DEVICES"] != row.env || len(out.Attached) != len(row.ids) || e.Rlimits[0].Name != "memlock" {
			t.Errorf("%v: %v", row.ids, e)
		}
		if len(e.Capabilities)+len(e.Syscalls) > 0 || e.HostIpc {
			t.Errorf("%v", e)
		}
	}
}

func TestMeasurements(t *testing.T) {
	tree := fixturetest.Start(t, "sn30-8")
	m := configured(t, tree)
	s := bench.Scan(t, m)
	figures := func() map[string]string {
		got := map[string]string{}
		for _, x := range m.Sample(t.Context(), s) {
			got[x.GetDeviceId()] = fmt.Sprintf("%.1f %v", x.GetValue(), x.GetQuality())
		}
		return got
	}
	got := figures()
	for id, want := range map[string]string{busy: "46.0 MEASURED", busy + "/TILE_3": "92.0 MEASURED", busy + "/TILE_4": "0.0 MEASURED", idle: "0.0 MEASURED"} {
		if got[id] != want {
			t.Errorf("%s is %q, want %q", id, got[id], want)
		}
	}
	if err := tree.Flood("sntilestat"); err != nil {
		t.Fatal(err)
	}
	if got := figures(); got[busy] != "0.0 UNAVAILABLE" {
		t.Errorf("sntilestat floods: %q", got[busy])
	}
}

// The total utilization of processes that share a tile does not exceed that of the tile.
func TestSharedTile(t *testing.T) {
	d := &pb.Device{Id: "a", Attributes: map[string]string{"xrdu": "0", "rdu": "0"}}
	rows := map[tile][]row{{0, 0, 0}: {{80, 1}, {70, 2}}, {0, 0, 1}: {{0, 0}}}
	if got := util(d, rows, nil, anybody); got.GetValue() != 50 {
		t.Errorf("%v", got)
	}
}

// The current output of snconfig updates states, and adds no devices.
func TestStatesOfTheMoment(t *testing.T) {
	const known = "XRDU Name: XRDU_0\nRDU name: RDU_0\n"
	s := &system{}
	s.read(known + "State: Online\nTILE Name: TILE_0\n")
	s.update(known + "State: Offline\nTILE Name: TILE_0\nStatus: Hung\nTILE Name: TILE_9\nRDU name: RDU_1\n")
	if r := s.rdus[0]; len(s.rdus) != 1 || r.state != "offline" || len(r.tiles) != 1 || r.tiles[0] != "hung" {
		t.Errorf("%d RDUs, %+v", len(s.rdus), r)
	}
}

// TestWhoseTheyAre checks two processes with two tiles each of the same RDU.
func TestWhoseTheyAre(t *testing.T) {
	m := configured(t, fixturetest.Start(t, "sn30-8"))
	s := bench.Scan(t, m)
	for name, row := range map[string]struct {
		pids      []int32
		util      string
		processes string
	}{
		"not known":  {nil, "46.0 ATTRIBUTED", "[]"},
		"both":       {[]int32{2750333, 2750339, 7}, "46.0 MEASURED", "[2750333: 23.0 2750339: 23.0]"},
		"one":        {[]int32{2750339}, "23.0 MEASURED", "[2750339: 23.0]"},
		"other ones": {[]int32{7}, "0.0 MEASURED", "[]"},
	} {
		w := m.SampleWorkloads(t.Context(), s, &pb.WorkloadSet{PerProcess: true, Workloads: []*pb.Workload{{
			AllocationId: "a", HostPids: row.pids, Allocations: []*pb.Allocation{{Slot: whole, DeviceId: busy, Amount: "1"}},
		}}})[0]
		processes := []string{}
		for _, p := range w.GetProcesses() {
			processes = append(processes, fmt.Sprintf("%d: %.1f", p.GetHostPid(), p.GetMetrics()[0].GetValue()))
		}
		got := fmt.Sprintf("%.1f %v", w.GetMetrics()[0].GetValue(), w.GetMetrics()[0].GetQuality())
		if got != row.util || fmt.Sprint(processes) != row.processes {
			t.Errorf("%s: %s, %v, want %s, %s", name, got, processes, row.util, row.processes)
		}
	}
}

func TestBadSettingsNameTheField(t *testing.T) {
	bench.Refuses(t, map[string]string{
		`{"speed": 1}`: "speed", `{"nodes": ["../sda"]}`: "nodes[0]", `{"nodes": ["/dev/sda"]}`: "nodes[0]", `{"shared_nodes": ["a b"]}`: "shared_nodes[0]",
		`{"nodes": [` + strings.Repeat(`"a",`, 16) + `"a"]}`: "17 are more than 16", `{"snml": "localhost"}`: "snml", `{"snml_method": "GetSystemPlatformInfo"}`: "snml_method",
	})
}

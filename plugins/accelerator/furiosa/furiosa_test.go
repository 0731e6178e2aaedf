package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

// of returns the devices of a card by their elements, "" for the whole card.
func of(s *pb.DeviceSnapshot, name string) map[string]*pb.Device {
	out := map[string]*pb.Device{}
	for _, d := range s.GetDevices() {
		if "npu"+d.GetAttributes()["number"] == name {
			out[d.GetAttributes()["elements"]] = d
		}
	}
	return out
}

func TestDevicesAreDescribed(t *testing.T) {
	s := bench.Scan(t, bench.Open(t, fixturetest.Start(t, "rngd-8").Roots(), `{"pe_groups": [4, 2]}`))
	d := of(s, "npu3")
	whole := d[""]
	if whole.GetModel() != "FuriosaAI RNGD" || whole.GetSerial() != "RNGD00000123" || whole.GetPciAddress() != "0000:92:00.0" || whole.GetNumaNode() != 0 ||
		whole.GetMemoryBytes() != 48<<30 || whole.GetProcessingUnits() != 8 || whole.GetAttributes()["firmware"] != "1.6.0, c1bebfd" || whole.GetPcieRoot() != "pci0000:90" {
		t.Errorf("%v", whole)
	}
	if p := d["4-7"]; len(d) != 7 || p.GetId() != whole.GetId()+"/pe4-7" || p.GetParentId() != whole.GetId() || p.GetMemoryBytes() != 24<<30 ||
		p.GetProcessingUnits() != 4 || p.GetCapacity()["rngd.device:4pe"] != "1" || len(p.GetCapacity()) != 1 || len(p.GetConsumes()[0].GetAmounts()) != 4 {
		t.Errorf("%d parts, %v", len(d), p)
	}
	if of(s, "npu5")[""].NumaNode != nil {
		t.Error("numa node -1 is shown")
	}
	if len(s.GetLinks()) != 4 || s.GetDriverInfo()["driver"] != "1.4.1, 5f3a912" {
		t.Errorf("%v, %v", s.GetLinks(), s.GetDriverInfo())
	}
	// Without the setting there are no partitions.
	if s := bench.Scan(t, bench.Open(t, fixturetest.Start(t, "rngd-8").Roots(), "")); len(s.GetDevices()) != 9 || len(s.GetCounters()) != 0 || len(s.GetSlots()) != 2 {
		t.Errorf("%d devices, %v", len(s.GetDevices()), s.GetSlots())
	}
}

func TestGroupsThatOverlapDrawOnTheSameElements(t *testing.T) {
	d := of(bench.Scan(t, bench.Open(t, fixturetest.Start(t, "rngd-8").Roots(), `{"pe_groups": [1, 2, 4]}`)), "npu0")
	overlap := func(a, b string) bool {
		for k := range d[a].GetConsumes()[0].GetAmounts() {
			if d[b].GetConsumes()[0].GetAmounts()[k] != "" {
				return true
			}
		}
		return false
	}
	for _, row := range []struct {
		a, b string
		want bool
	}{{"0-1", "0-3", true}, {"2", "2-3", true}, {"4-7", "", true}, {"0-3", "4-5", false}, {"6", "7", false}, {"2-3", "0-1", false}} {
		if overlap(row.a, row.b) != row.want {
			t.Errorf("%q and %q overlap: %v", row.a, row.b, !row.want)
		}
	}
}

func TestRejections(t *testing.T) {
	const mgmt = "sys/devices/virtual/rngd_mgmt/rngd!npu2mgmt/"
	for name, row := range map[string]struct {
		file, text string // empty text removes the file
		reason     string
	}{
		"platform":       {mgmt + "platform_type", "Other\n", `platform_type is "Other"`},
		"no platform":    {mgmt + "platform_type", "", `platform_type is ""`},
		"fpga":           {mgmt + "platform_type", "VITIS\n", "setting fpga"},
		"garbage uuid":   {mgmt + "device_uuid", "../../etc\n", `device_uuid is "../../etc"`},
		"not on the bus": {mgmt + "busname", "0000:ff:00.0\n", "not on the bus"},
		"dead":           {mgmt + "alive", "0\n", "not alive"},
		"no node":        {"dev/rngd/npu2mgmt", "", "/dev/rngd/npu2mgmt is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fixturetest.Start(t, "rngd-8")
			drivertest.Spoil(t, tree, row.file, row.text)
			s := bench.Scan(t, bench.Open(t, tree.Roots(), `{"pe_groups": [4]}`))
			for _, d := range of(s, "npu2") {
				drivertest.Judged(t, d, row.reason)
			}
			if others := of(s, "npu1"); !others[""].GetAllocatable() || !others["0-3"].GetAllocatable() {
				t.Errorf("others suffer: %v", others)
			}
		})
	}
	// If a partition's own file is missing, only this partition is rejected.
	tree := fixturetest.Start(t, "rngd-8")
	if err := tree.Remove("dev/rngd/npu2pe4-7"); err != nil {
		t.Fatal(err)
	}
	d := of(bench.Scan(t, bench.Open(t, tree.Roots(), `{"pe_groups": [2, 4]}`)), "npu2")
	if d["4-7"].GetAllocatable() || !d["0-3"].GetAllocatable() || !d[""].GetAllocatable() || !d["4-5"].GetAllocatable() {
		t.Errorf("%v", d)
	}
}

func TestWarboy(t *testing.T) {
	tree := fixturetest.Start(t, "warboy-2")
	s := bench.Scan(t, bench.Open(t, tree.Roots(), ""))
	if d := s.GetDevices()[0]; d.GetId() != "WBYB00000000010" || d.GetAttributes()["number"] != "9" || d.GetMemoryBytes() != 16<<30 || d.GetCapacity()["warboy.device"] != "1" {
		t.Errorf("without uuid: %v", d)
	}
	if d := s.GetDevices()[2]; d.GetAllocatable() || !bench.Scan(t, bench.Open(t, tree.Roots(), `{"fpga": true}`)).GetDevices()[2].GetAllocatable() {
		t.Errorf("fpga: %v", d)
	}
	if s := bench.Scan(t, bench.Open(t, tree.Roots(), `{"pe_groups": [1]}`)); len(s.GetDevices()) != 3 || len(s.GetCounters()) > 0 {
		t.Errorf("a Warboy is cut: %v", s)
	}
}

func edit(t *testing.T, m *machine, s *pb.DeviceSnapshot, devices ...*pb.Device) []string {
	t.Helper()
	r := drivertest.Edit(t, m, drivertest.Request(t, s, drivertest.Whole(devices...)...))
	if e := r.GetEdits(); len(e.GetCapabilities()) > 0 || len(e.GetMounts()) > 0 || len(e.GetRlimits()) != 1 || len(r.GetAttached()) != len(devices) {
		t.Errorf("%v", r)
	}
	return drivertest.Nodes(r)
}

func TestEdits(t *testing.T) {
	m := bench.Open(t, fixturetest.Start(t, "rngd-8").Roots(), `{"pe_groups": [1, 2, 4]}`)
	s := bench.Scan(t, m)
	d := of(s, "npu1")
	has := func(what string, nodes []string, present, absent string) {
		t.Helper()
		for _, name := range strings.Fields(present) {
			if !slices.Contains(nodes, "/dev/rngd/npu1"+name) {
				t.Errorf("%s has no %s: %q", what, name, nodes)
			}
		}
		for _, name := range strings.Fields(absent) {
			if slices.Contains(nodes, "/dev/rngd/npu1"+name) {
				t.Errorf("%s has %s", what, name)
			}
		}
	}
	whole := edit(t, m, s, d[""])
	has("a card", whole, "mgmt pe0 pe7 pe0-1 pe4-7 ch0 ch7r dmar bar0", "")
	if len(whole) != 35 || slices.ContainsFunc(whole, func(p string) bool { return !strings.HasPrefix(p, "/dev/rngd/npu1") }) {
		t.Errorf("a card has %d nodes: %q", len(whole), whole)
	}
	has("four elements", edit(t, m, s, d["4-7"]), "mgmt pe4 pe7 pe4-5 pe6-7 pe4-7 ch0 dmar", "pe3 pe0-1 pe0-3 bar0 bar2")
	has("one element", edit(t, m, s, d["2"]), "mgmt pe2 ch2", "pe0 pe3 pe2-3 pe0-3 bar4")
	both := edit(t, m, s, d["0"], d["2-3"]) // files that partitions share are added once
	has("two parts", both, "pe0 pe2 pe3 pe2-3", "pe1 pe0-1")

	m = bench.Open(t, fixturetest.Start(t, "warboy-2").Roots(), "")
	s = bench.Scan(t, m)
	nodes := edit(t, m, s, s.GetDevices()[1])
	for _, name := range []string{"npu10", "npu10_mgmt", "npu10pe0-1", "npu10ch3", "npu10_bar4"} {
		if !slices.Contains(nodes, "/dev/"+name) {
			t.Errorf("no %s: %q", name, nodes)
		}
	}
	if len(nodes) != 12 {
		t.Errorf("%q", nodes)
	}
}

func TestMetricsOfRNGD(t *testing.T) {
	tree := fixturetest.Start(t, "rngd-8")
	m := bench.Open(t, tree.Roots(), `{"pe_groups": [4]}`)
	s := bench.Scan(t, m)
	d := of(s, "npu0")
	id, half := d[""].GetId(), d["4-7"].GetId()
	write := func(pe, all, busy int) {
		t.Helper()
		file := fmt.Sprintf("sys/devices/virtual/rngd_mgmt/rngd!npu0pe%d/metrics", pe)
		if err := tree.Write(file, fmt.Sprintf("CycleCount: %d\nTaskCycleCount: %d\n", all, busy)); err != nil {
			t.Fatal(err)
		}
	}
	bench.Measures(t, m, s, map[string]string{
		"furiosa_util " + id: "0 UNAVAILABLE",
		"furiosa_mem " + id:  "8.589934592e+09 of 5.1539607552e+10 MEASURED", "furiosa_mem " + half: "4.294967296e+09 of 2.5769803776e+10 MEASURED",
		"furiosa_power " + id: "41 MEASURED", "furiosa_temperature " + id: "36.5 MEASURED",
	})
	// The elements have worked much since their start; since the last scan the upper half has
	// worked for a quarter of the time.
	for pe := range elements {
		write(pe, 2_000_000_000, 1_900_000_000)
	}
	bench.Scan(t, m)
	for pe := range elements {
		write(pe, 2_000_001_000, 1_900_000_000+250*(pe/4))
	}
	bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{"furiosa_util " + id: "12.5 of 100 MEASURED", "furiosa_util " + half: "25 of 100 MEASURED", "furiosa_power " + half: ""})
	write(5, 10, 5) // the counter has restarted
	bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{"furiosa_util " + half: "0 UNAVAILABLE"})
	for pe := range elements {
		write(pe, 3_000_000_000, 1_000_000_000) // only the counter of work has restarted
	}
	bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{"furiosa_util " + id: "0 UNAVAILABLE"})
	if err := tree.Fail("furiosa-smi", 1, "no"); err != nil {
		t.Fatal(err)
	}
	bench.Measures(t, m, s, map[string]string{"furiosa_power " + id: "0 UNAVAILABLE", "furiosa_temperature " + id: "0 UNAVAILABLE", "furiosa_mem " + id: "8.589934592e+09 of 5.1539607552e+10 MEASURED"})
	w := m.SampleWorkloads(t.Context(), s, &pb.WorkloadSet{Workloads: []*pb.Workload{{AllocationId: "a", Allocations: []*pb.Allocation{{DeviceId: half}}}}})
	if len(w) != 1 || len(w[0].GetMetrics()) != 2 || w[0].GetMetrics()[0].GetQuality() != pb.Metric_ATTRIBUTED || w[0].GetMetrics()[0].GetValue() != 4<<30 {
		t.Errorf("%v", w)
	}
}

func TestMetricsOfWarboyComeFromAnOlderProgram(t *testing.T) {
	m := bench.Open(t, fixturetest.Start(t, "warboy-2").Roots(), "")
	s := bench.Scan(t, m)
	id := s.GetDevices()[1].GetId()
	bench.Measures(t, m, s, map[string]string{
		"furiosa_util " + id: "60.25 of 100 MEASURED", "furiosa_mem " + id: "4.294967296e+09 of 1.7179869184e+10 MEASURED",
		"furiosa_power " + id: "28.9 MEASURED", "furiosa_temperature " + id: "44 MEASURED",
	})
}

func TestFields(t *testing.T) {
	tree := fixturetest.Start(t, "warboy-2")
	for text, want := range map[string]uint64{
		"dram_usage: 0x1f\n": 31, "dram_usage 1f\n": 31, "shared_usage=2,dram_usage=0x1F": 31, "DramUsage : 1f": 31,
		"dram_usage: zz": 0, "": 0, "dram_usage: 0xffffffffffffffffff": 0,
	} {
		if err := tree.Write("root/x", text); err != nil {
			t.Fatal(err)
		}
		if f, err := fields(16, tree.Roots().Driver, "x"); err != nil || f["dramusage"] != want {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
}

func TestBadSettings(t *testing.T) {
	bench.Refuses(t, map[string]string{
		`{"pe_groups": [3]}`:    "pe_groups: 3 is not 1, 2 or 4",
		`{"pe_groups": [2, 2]}`: "pe_groups: 2 is listed twice",
		`{"pe_group": 2}`:       "pe_group",
		`{"fpga": 1}`:           "fpga",
	})
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

func TestTextIsReadLeniently(t *testing.T) {
	show := func(r report, name string) string {
		s := r[name]
		if s == nil {
			return "nothing"
		}
		text := "status=" + s.status
		if s.locked != nil {
			text += fmt.Sprint(" locked=", *s.locked)
		}
		if s.temperature != nil {
			text += fmt.Sprint(" temperature=", *s.temperature)
		}
		if s.power != nil {
			text += fmt.Sprint(" power=", *s.power)
		}
		return text
	}
	for name, row := range map[string]struct{ text, card, want string }{
		"block":      {"Card 3:\n  Status: Up\n  Device Locked\n", "3", "status=up locked=true"},
		"flag":       {"/dev/groqA12.pci\n Device Locked: False\n", "12", "status= locked=false"},
		"unlocked":   {"groq2.pci is Up, Device unlocked", "2", "status=up locked=false"},
		"table":      {"id  temp  power\n 0 | 45.5 C | 81 W |\n 1 | 46 °C | 82.5 Watts |", "1", "status= temperature=46 power=82.5"},
		"coloured":   {"\x1b[32mTSP 4\x1b[0m \x1b[1mDown\x1b[0m", "4", "status=down"},
		"address":    {"23:00.0 temperature = 51 power = 77", "0000:23:00.0", "status= temperature=51 power=77"},
		"numbered":   {"device #7 Temp(C): 60.0 Power(W): 90", "7", "status= temperature=60 power=90"},
		"time":       {"10:22:33 device 1 up", "10", "nothing"},
		"heading":    {"3 of 8 W\nstatus: down\n", "8", "nothing"},
		"garbage":    {"\xff\xfe\x00;;;", "0", "nothing"},
		"padded":     {"card 08 power 5 W", "8", "status= power=5"},
		"first wins": {"card 1 power 5 W\n power 500 W", "1", "status= power=5"},
	} {
		if got := show(read(row.text), row.card); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func TestCardsAreDescribed(t *testing.T) {
	tree := fixturetest.Start(t, "groqnode-8")
	s := bench.Scan(t, bench.Open(t, tree.Roots(), ""))
	all := driver.ByID(s)
	d := all["0000:23:00.0"]
	if d.GetModel() != "GroqCard" || d.GetPcieRoot() != "pci0000:20" || d.GetNumaNode() != 0 || d.GetMemoryBytes() != 230686720 || d.GetAttributes()["node"] != "groqA10.pci" {
		t.Errorf("%v", d)
	}
	if all["0000:ab:00.0"].NumaNode != nil {
		t.Errorf("numa node -1 is shown")
	}
	if board := all["0000:c3:00.0"]; board.GetAllocatable() || !strings.Contains(board.GetRejectReasons()[0], "not a GroqCard") {
		t.Errorf("%v", board)
	}
	var order []string
	for _, d := range s.GetDevices()[:8] {
		order = append(order, d.GetAttributes()["node"])
	}
	if want := []string{"groqA8.pci", "groqA9.pci", "groqA10.pci"}; !slices.Equal(order[:3], want) {
		t.Errorf("order: %q", order)
	}
}

// TestFilesWithoutClass simulates a driver that does not associate files with cards.
func TestFilesWithoutClass(t *testing.T) {
	tree := fixturetest.Start(t, "groqnode-8")
	if err := tree.Remove("sys/bus/pci/devices/0000:c3:00.0"); err != nil {
		t.Fatal(err)
	}
	m := bench.Open(t, tree.Roots(), "")
	for _, c := range m.cards() {
		if err := tree.Remove(strings.TrimPrefix(c.Dir, tree.Dir+"/") + "/groq"); err != nil {
			t.Fatal(err)
		}
	}
	if all := bench.Devices(t, m); !all["0000:23:00.0"].GetAllocatable() || all["0000:23:00.0"].GetAttributes()["node"] != "groqA10.pci" {
		t.Errorf("as many files as cards: %v", all["0000:23:00.0"])
	}
	if err := tree.Write("dev/groqA99.pci", ""); err != nil {
		t.Fatal(err)
	}
	if all := bench.Devices(t, m); all["0000:23:00.0"].GetAllocatable() || !strings.Contains(all["0000:23:00.0"].GetRejectReasons()[0], "9 device files") {
		t.Errorf("more files than cards: %v", all["0000:23:00.0"])
	}
	for _, name := range []string{"dev/groqA99.pci", "dev/groqA8.pci"} {
		if err := tree.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if all := bench.Devices(t, m); all["0000:23:00.0"].GetAllocatable() || !strings.Contains(all["0000:23:00.0"].GetRejectReasons()[0], "7 device files") {
		t.Errorf("fewer files than cards: %v", all["0000:23:00.0"])
	}
}

func TestRejections(t *testing.T) {
	const dir = "sys/devices/pci0000:00/0000:03:00.0/"
	for name, row := range map[string]struct{ file, text, reason string }{
		"other chip":   {dir + "device", "0x0001\n", "not a GroqChip"},
		"garbage":      {dir + "subsystem_device", "\xff\xfe", "not a GroqCard"},
		"node is file": {"dev/groqA8.pci", "x", "is not a device"},
		"hot":          {dir + "hwmon/hwmon0/temp1_input", "100000\n", "100 °C"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fixturetest.Start(t, "groqnode-8")
			if err := tree.Write(row.file, row.text); err != nil {
				t.Fatal(err)
			}
			all := bench.Devices(t, bench.Open(t, tree.Roots(), ""))
			if d := all["0000:03:00.0"]; d.GetAllocatable() || !strings.Contains(strings.Join(d.GetRejectReasons(), ";"), row.reason) {
				t.Errorf("%v", d)
			}
			if !all["0000:0b:00.0"].GetAllocatable() {
				t.Errorf("the next card suffers: %v", all["0000:0b:00.0"])
			}
		})
	}
	tree := fixturetest.Start(t, "groqnode-8")
	if all := bench.Devices(t, bench.Open(t, tree.Roots(), `{"other_cards": true}`)); all["0000:c3:00.0"].GetAllocatable() {
		t.Error("a board without a device file is given away")
	}
}

func TestEdits(t *testing.T) {
	m := bench.Open(t, fixturetest.Start(t, "groqnode-8").Roots(), `{"hugepages": true}`)
	s := bench.Scan(t, m)
	out := drivertest.Edit(t, m, drivertest.Request(t, s, &pb.Allocation{Slot: slot, DeviceId: "0000:0b:00.0", Amount: "1"}))
	e := out.GetEdits()
	if len(e.DeviceNodes) != 1 || e.DeviceNodes[0].Path != "/dev/groqA9.pci" || len(e.Mounts) != 2 || e.Mounts[0].Target != "/opt/groq/runtime" || e.Mounts[0].Writable || !e.Mounts[1].Writable {
		t.Errorf("%v", e)
	}
	if len(e.Capabilities)+len(e.Syscalls) > 0 || e.HostIpc || e.Rlimits[0].Name != "memlock" {
		t.Errorf("%v", e)
	}
}

// TestMeasurements measures with tsp-ctl, then with the sensors only.
func TestMeasurements(t *testing.T) {
	tree := fixturetest.Start(t, "groqnode-8")
	m := bench.Open(t, tree.Roots(), "")
	s := bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{
		"groq_temperature 0000:0b:00.0": "51.5 of 100 MEASURED", "groq_power 0000:0b:00.0": "81.25 MEASURED", "groq_locked 0000:0b:00.0": "1 of 1 MEASURED",
		"groq_locked 0000:03:00.0": "0 of 1 MEASURED", "groq_power 0000:c3:00.0": "0 UNAVAILABLE",
	})
	if err := tree.Fail("tsp-ctl", 1, "driver mismatch"); err != nil {
		t.Fatal(err)
	}
	bench.Measures(t, m, s, map[string]string{
		"groq_temperature 0000:0b:00.0": "41.5 of 100 MEASURED", "groq_power 0000:0b:00.0": "71 MEASURED", "groq_locked 0000:0b:00.0": "0 UNAVAILABLE",
	})
	if all := bench.Devices(t, m); !all["0000:0b:00.0"].GetAllocatable() {
		t.Errorf("without tsp-ctl: %v", all["0000:0b:00.0"])
	}
	set := &pb.WorkloadSet{Workloads: []*pb.Workload{{AllocationId: "a", Allocations: []*pb.Allocation{{Slot: slot, DeviceId: "0000:0b:00.0", Amount: "1"}}}}}
	if w := m.SampleWorkloads(t.Context(), s, set); len(w) != 1 || w[0].Metrics[0].GetQuality() != pb.Metric_ATTRIBUTED {
		t.Errorf("%v", w)
	}
}

func TestBadSettingsNameTheField(t *testing.T) {
	bench.Refuses(t, map[string]string{`{"speed": 1}`: "speed", `{"runtime": "../x"}`: "runtime", `{"runtime": "/"}`: "runtime", `{"runtime": "/` + strings.Repeat("x", 300) + `"}`: "256"})
}

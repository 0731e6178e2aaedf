package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

// A card with a serial number, and one without.
const named, unnamed = "XFL1A2B3C4D0", "0000:3b:00.0"

func TestDeviceIsDescribed(t *testing.T) {
	s := bench.Scan(t, bench.Open(t, fixturetest.Start(t, "lpu-2").Roots(), ""))
	all := driver.ByID(s)
	d := all[named]
	if d.GetSerial() != named || d.GetPciAddress() != "0000:0a:00.0" || d.GetNumaNode() != 0 || d.GetMemoryBytes() != 16<<30 ||
		d.GetAttributes()["node"] != "xfpga/xvc_pri.m2560.0" || d.GetAttributes()["render_node"] != "dri/renderD128" || d.GetAttributes()["board"] != "U55C" {
		t.Errorf("%v", d)
	}
	if d := all[unnamed]; d.NumaNode != nil || d.GetAttributes()["node"] != "xfpga/xvc_pri.m15104.0" {
		t.Errorf("%v", d)
	}
	if last := s.GetDevices()[2]; last.GetAllocatable() || !strings.Contains(last.GetRejectReasons()[0], "xocl does not serve") {
		t.Errorf("%v", last)
	}
}

func TestNumberOfAPlace(t *testing.T) {
	for address, want := range map[string]string{
		"0000:3b:00.0": "15104", "0000:01:1f.1": "505", "0001:00:00.0": "65536", "10000:00:00.0": "not the address of a card", "0000:00:20.0": "not the address of a card", "": "not the address of a card",
	} {
		n, err := place(address)
		got := fmt.Sprint(n)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

// TestOtherCardsAreNone checks that Xilinx cards are not devices if the vendor's runtime is not
// installed.
func TestOtherCardsAreNone(t *testing.T) {
	tree := fixturetest.Start(t, "lpu-2")
	if s := bench.Scan(t, bench.Open(t, tree.Roots(), `{"device_ids": ["5001"]}`)); len(s.GetDevices()) != 0 {
		t.Errorf("%v", s.GetDevices())
	}
	if s := bench.Scan(t, bench.Open(t, tree.Roots(), `{"device_ids": ["505c"]}`)); len(s.GetDevices()) != 3 {
		t.Errorf("%v", s.GetDevices())
	}
	if err := tree.Remove("root/opt/hyperdex"); err != nil {
		t.Fatal(err)
	}
	m := bench.Open(t, tree.Roots(), "")
	if s := bench.Scan(t, m); len(s.GetDevices()) != 0 {
		t.Errorf("%v", s.GetDevices())
	}
	if checks := m.Check(t.Context()); checks[0].GetOk() || !checks[1].GetOk() {
		t.Errorf("%v", checks)
	}
}

func TestRejections(t *testing.T) {
	const dir = "sys/devices/pci0000:10/0000:3b:00."
	for name, row := range map[string]struct{ file, text, reason string }{ // empty text removes the file
		"no user function": {"sys/bus/pci/devices/0000:3b:00.1", "", "is missing"},
		"not Xilinx":       {dir + "1/vendor", "0x1234\n", "is missing"},
		"no render node":   {"dev/dri/renderD129", "", "no such file"},
		"no management":    {"dev/xfpga/xvc_pri.m15104.0", "", "no such file"},
		"node is a file":   {"dev/xfpga/xvc_pri.m15104.0", "x", "is not a device"},
		"offline":          {dir + "0/dev_offline", "1\n", "offline"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fixturetest.Start(t, "lpu-2")
			do := func() error { return tree.Write(row.file, row.text) }
			if row.text == "" {
				do = func() error { return tree.Remove(row.file) }
			}
			if err := do(); err != nil {
				t.Fatal(err)
			}
			all := bench.Devices(t, bench.Open(t, tree.Roots(), ""))
			if d := all[unnamed]; d.GetAllocatable() || !strings.Contains(strings.Join(d.GetRejectReasons(), ";"), row.reason) {
				t.Errorf("%v", d)
			}
			if !all[named].GetAllocatable() {
				t.Errorf("the other card suffers: %v", all[named])
			}
		})
	}
}

func TestEdits(t *testing.T) {
	for config, want := range map[string]string{"": "[] false", `{"ipc_lock": true, "host_ipc": true}`: "[CAP_IPC_LOCK] true"} {
		m := bench.Open(t, fixturetest.Start(t, "lpu-2").Roots(), config)
		s := bench.Scan(t, m)
		out := drivertest.Edit(t, m, drivertest.Request(t, s, &pb.Allocation{Slot: slot, DeviceId: unnamed, Amount: "1"}))
		e := out.GetEdits()
		if len(e.DeviceNodes) != 2 || e.DeviceNodes[0].Path != "/dev/xfpga/xvc_pri.m15104.0" || e.DeviceNodes[1].Path != "/dev/dri/renderD129" {
			t.Errorf("%v", e.DeviceNodes)
		}
		if len(e.Mounts) != 1 || e.Mounts[0].Target != "/opt/hyperdex" || e.Mounts[0].Writable || e.Rlimits[0].Name != "memlock" {
			t.Errorf("%v", e)
		}
		if got := fmt.Sprint(e.Capabilities, e.HostIpc); got != want {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
}

func TestMeasurements(t *testing.T) {
	m := bench.Open(t, fixturetest.Start(t, "lpu-2").Roots(), "")
	s := bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{
		"hyperaccel-lpu_temperature " + unnamed: "41 of 95 MEASURED", "hyperaccel-lpu_power " + unnamed: "31.5 MEASURED",
	})
}

func TestBadSettingsNameTheField(t *testing.T) {
	bench.Refuses(t, map[string]string{
		`{"speed": 1}`: "speed", `{"runtime": ""}`: "runtime", `{"runtime": "/opt/../etc"}`: "runtime", `{"device_ids": ["505C"]}`: "device_ids[0]",
		`{"device_ids": [` + strings.Repeat(`"505c",`, 64) + `"505c"]}`: "65 are more than 64",
	})
}

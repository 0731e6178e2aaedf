package main

import (
	"slices"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

func TestDeviceIsDescribed(t *testing.T) {
	tree := fixturetest.Start(t, "n300-4")
	all := bench.Devices(t, bench.Open(t, tree.Roots(), string(tree.Config())))
	d := all["87160100f3fb5a11"]
	if d.GetModel() != "Wormhole n300" || d.GetSerial() != "0100014411903002" || d.GetPciAddress() != "0000:21:00.0" || d.GetPcieRoot() != "pci0000:20" ||
		d.GetNumaNode() != 0 || d.GetMemoryBytes() != 24<<30 || d.GetAttributes()["chip_count"] != "2" || d.GetAttributes()["fw_bundle"] != "18.6.0.0" {
		t.Errorf("%v", d)
	}
	if last := all["87160100f3fb5a13"]; last.NumaNode != nil {
		t.Errorf("numa node -1 is shown as %d", last.GetNumaNode())
	}
	// The order is numeric: ten follows nine.
	s := bench.Scan(t, bench.Open(t, fixturetest.Start(t, "n150-2").Roots(), ""))
	if s.GetDevices()[0].GetAttributes()["number"] != "9" {
		t.Errorf("order: %v", s.GetDevices())
	}
}

func TestRejections(t *testing.T) {
	const entry = "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/tenstorrent/tenstorrent!0/"
	for name, row := range map[string]struct {
		file, text string // empty text removes the file
		reason     string
	}{
		"other generation": {entry + "tt_card_type", "p150b\n", "is not Wormhole"},
		"grayskull":        {entry + "tt_card_type", "e150\n", "is not Wormhole"},
		"a lie":            {"sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/device", "0xb140\n", "but the chip is a Blackhole"},
		"garbage":          {entry + "tt_card_type", "\xff\xfe", "does not name the board"},
		"no name":          {entry + "tt_card_type", "", "does not name the board"},
		"garbage number":   {entry + "tt_asic_id", "../../etc\n", "not a hexadecimal number"},
		"garbage pulse":    {entry + "tt_heartbeat", "thump\n", "not a number"},
		"off the bus":      {entry + "tt_heartbeat", "4294967295\n", "does not answer on the bus"},
		"no node":          {"dev/tenstorrent/0", "", "no such file"},
		"node is a file":   {"dev/tenstorrent/0", "x", "is not a device"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fixturetest.Start(t, "n300-4")
			drivertest.Spoil(t, tree, row.file, row.text)
			s := bench.Scan(t, bench.Open(t, tree.Roots(), string(tree.Config())))
			drivertest.Judged(t, s.GetDevices()[0], row.reason)
			for _, other := range s.GetDevices()[1:4] {
				drivertest.Judged(t, other, "")
			}
		})
	}
}

func TestOtherBoardsNeedASetting(t *testing.T) {
	tree := fixturetest.Start(t, "n300-4")
	if d := bench.Scan(t, bench.Open(t, tree.Roots(), `{"heartbeat_timeout_s": 0}`)).GetDevices()[4]; d.GetAllocatable() || d.GetModel() != "Blackhole p100a" {
		t.Errorf("without: %v", d)
	}
	d := bench.Scan(t, bench.Open(t, tree.Roots(), `{"heartbeat_timeout_s": 0, "other_boards": true}`)).GetDevices()[4]
	if !d.GetAllocatable() || d.GetCapacity()[otherSlot] != "1" || d.GetId() != "0000043119209001" {
		t.Errorf("with: %v", d)
	}
}

func TestHeartbeat(t *testing.T) {
	const file = "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/tenstorrent/tenstorrent!0/tt_heartbeat"
	tree := fixturetest.Start(t, "n300-4")
	m := bench.Open(t, tree.Roots(), `{"heartbeat_timeout_s": 10}`)
	now := time.Unix(1000, 0)
	m.now = func() time.Time { return now }
	for i, step := range []struct {
		after time.Duration
		beat  string
		good  bool
	}{{0, "7", true}, {9 * time.Second, "7", true}, {time.Second, "7", false}, {time.Second, "8", true}, {9 * time.Second, "8", true}} {
		now = now.Add(step.after)
		if err := tree.Write(file, step.beat); err != nil {
			t.Fatal(err)
		}
		if d := bench.Scan(t, m).GetDevices()[0]; d.GetAllocatable() != step.good {
			t.Errorf("step %d: %v", i, d)
		}
	}
}

func TestEdits(t *testing.T) {
	tree := fixturetest.Start(t, "n150-2")
	prepare := func(config string, ids ...string) *pb.PrepareResponse {
		t.Helper()
		m := bench.Open(t, tree.Roots(), config)
		s := bench.Scan(t, m)
		return drivertest.Edit(t, m, drivertest.Request(t, s, drivertest.Whole(drivertest.Pick(t, s, ids...)...)...))
	}
	r := prepare("", "0100018511723001", "0100018511723000")
	if got := drivertest.Nodes(r); !slices.Equal(got, []string{"/dev/tenstorrent/9", "/dev/tenstorrent/10"}) || r.GetAttached()[0].GetDeviceId() != "0100018511723000" {
		t.Errorf("nodes %q, %v", got, r.GetAttached())
	}
	if e := r.GetEdits(); len(e.GetMounts()) != 2 || !e.GetMounts()[0].GetOptional() || !e.GetMounts()[0].GetWritable() || len(e.GetCapabilities()) > 0 {
		t.Errorf("%v", e)
	}
	r = prepare(`{"hugepages": false, "ipc_lock": true}`, "0100018511723000")
	if e := r.GetEdits(); len(e.GetMounts()) > 0 || !slices.Equal(e.GetCapabilities(), []string{"CAP_IPC_LOCK"}) {
		t.Errorf("%v", e)
	}
	// The board is removed between the scan and Prepare.
	m := bench.Open(t, tree.Roots(), "")
	request := drivertest.Request(t, bench.Scan(t, m), &pb.Allocation{Slot: "tt-n150.device", DeviceId: "0100018511723000", Amount: "1"})
	if err := tree.Change("unplug"); err != nil {
		t.Fatal(err)
	}
	if r, err := m.Edit(t.Context(), request); err == nil {
		t.Errorf("a missing board was allocated: %v", r)
	}
}

func TestMetrics(t *testing.T) {
	m := bench.Open(t, fixturetest.Start(t, "n300-4").Roots(), "")
	s := bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{
		"tenstorrent_power 87160100f3fb5a12":       "85 of 160 MEASURED",
		"tenstorrent_util 87160100f3fb5a12":        "53.125 of 100 ESTIMATED",
		"tenstorrent_temperature 87160100f3fb5a12": "44 of 75 MEASURED",
		"tenstorrent_clock 87160100f3fb5a10":       "500 MEASURED",
		"tenstorrent_power 0000043119209001":       "0 UNAVAILABLE",
	})
	w := m.SampleWorkloads(t.Context(), s, &pb.WorkloadSet{Workloads: []*pb.Workload{
		{AllocationId: "a", Allocations: []*pb.Allocation{{DeviceId: "87160100f3fb5a12"}, {DeviceId: "gone"}}},
	}})
	if len(w) != 1 || len(w[0].GetMetrics()) != 4 || w[0].GetMetrics()[1].GetQuality() != pb.Metric_ATTRIBUTED || w[0].GetMetrics()[0].GetQuality() != pb.Metric_ESTIMATED {
		t.Errorf("%v", w)
	}
}

func TestBadSettings(t *testing.T) {
	bench.Refuses(t, map[string]string{
		`{"heartbeat_timeout_s": -1}`:   "heartbeat_timeout_s: -1 is not between 0 and 3600",
		`{"heartbeat_timeout_s": 3601}`: "heartbeat_timeout_s",
		`{"hugepage": true}`:            "hugepage",
		`{"ipc_lock": "yes"}`:           "ipc_lock",
	})
}

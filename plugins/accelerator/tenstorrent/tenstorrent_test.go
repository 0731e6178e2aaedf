package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func open(t *testing.T, tree *fixture.Tree, config string) *machine {
	t.Helper()
	m, err := vendor{}.Open(driver.NewHost(tree.Roots()), []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return m.(*machine)
}

func scan(t *testing.T, m *machine) *pb.DeviceSnapshot {
	t.Helper()
	s, err := m.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Revision = 1
	if err := accelerator.Validate(vendor{}.Describe(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func find(t *testing.T, s *pb.DeviceSnapshot, id string) *pb.Device {
	t.Helper()
	for _, d := range s.GetDevices() {
		if d.GetId() == id {
			return d
		}
	}
	t.Fatalf("no device %s in %v", id, s)
	return nil
}

func TestDeviceIsDescribed(t *testing.T) {
	tree := fixturetest.Start(t, "n300-4")
	s := scan(t, open(t, tree, string(tree.Config())))
	d := find(t, s, "87160100f3fb5a11")
	if d.GetModel() != "Wormhole n300" || d.GetSerial() != "0100014411903002" || d.GetPciAddress() != "0000:21:00.0" || d.GetPcieRoot() != "pci0000:20" ||
		d.GetNumaNode() != 0 || d.GetMemoryBytes() != 24<<30 || d.GetAttributes()["chip_count"] != "2" || d.GetAttributes()["fw_bundle"] != "18.6.0.0" {
		t.Errorf("%v", d)
	}
	if last := find(t, s, "87160100f3fb5a13"); last.NumaNode != nil {
		t.Errorf("numa node -1 is shown as %d", last.GetNumaNode())
	}
	// Ten comes after nine.
	s = scan(t, open(t, fixturetest.Start(t, "n150-2"), ""))
	if s.GetDevices()[0].GetAttributes()["number"] != "9" {
		t.Errorf("order: %v", s.GetDevices())
	}
}

func TestRejections(t *testing.T) {
	const entry = "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/tenstorrent/tenstorrent!0/"
	for name, row := range map[string]struct {
		file, text string // empty text: the file is removed
		reason     string
	}{
		"other generation": {entry + "tt_card_type", "p150b\n", "is not Wormhole"},
		"grayskull":        {entry + "tt_card_type", "e150\n", "is not Wormhole"},
		"a lie":            {"sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/device", "0xb140\n", "but the chip is a Blackhole"},
		"garbage":          {entry + "tt_card_type", "\xff\xfe", "does not say what board"},
		"no name":          {entry + "tt_card_type", "", "does not say what board"},
		"garbage number":   {entry + "tt_asic_id", "../../etc\n", "no hexadecimal number"},
		"garbage pulse":    {entry + "tt_heartbeat", "thump\n", "no number"},
		"no node":          {"dev/tenstorrent/0", "", "no such file"},
		"node is a file":   {"dev/tenstorrent/0", "x", "is no device"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fixturetest.Start(t, "n300-4")
			var err error
			if row.text == "" {
				err = tree.Remove(row.file)
			} else {
				err = tree.Write(row.file, row.text)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := scan(t, open(t, tree, string(tree.Config())))
			bad := s.GetDevices()[0]
			if bad.GetAllocatable() || !strings.Contains(strings.Join(bad.GetRejectReasons(), "; "), row.reason) {
				t.Errorf("%v, want %q", bad, row.reason)
			}
			for _, d := range s.GetDevices()[1:4] {
				if !d.GetAllocatable() {
					t.Errorf("%s suffers: %v", d.GetId(), d.GetRejectReasons())
				}
			}
		})
	}
}

func TestOtherBoardsNeedASetting(t *testing.T) {
	tree := fixturetest.Start(t, "n300-4")
	if d := scan(t, open(t, tree, `{"heartbeat_timeout_s": 0}`)).GetDevices()[4]; d.GetAllocatable() || d.GetModel() != "Blackhole p100a" {
		t.Errorf("without: %v", d)
	}
	d := scan(t, open(t, tree, `{"heartbeat_timeout_s": 0, "other_boards": true}`)).GetDevices()[4]
	if !d.GetAllocatable() || d.GetCapacity()[otherSlot] != "1" || d.GetId() != "0000043119209001" {
		t.Errorf("with: %v", d)
	}
}

func TestHeartbeat(t *testing.T) {
	const file = "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/tenstorrent/tenstorrent!0/tt_heartbeat"
	tree := fixturetest.Start(t, "n300-4")
	m := open(t, tree, `{"heartbeat_timeout_s": 10}`)
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
		if d := scan(t, m).GetDevices()[0]; d.GetAllocatable() != step.good {
			t.Errorf("step %d: %v", i, d)
		}
	}
}

func prepare(t *testing.T, m *machine, ids ...string) (*pb.PrepareResponse, error) {
	t.Helper()
	s := scan(t, m)
	var allocations []*pb.Allocation
	for _, id := range ids {
		for slot, amount := range find(t, s, id).GetCapacity() {
			allocations = append(allocations, &pb.Allocation{Slot: slot, DeviceId: id, Amount: amount})
		}
	}
	grants, err := accelerator.Grants(s, allocations)
	if err != nil {
		t.Fatal(err)
	}
	return m.Edit(t.Context(), &driver.Request{PrepareRequest: &pb.PrepareRequest{}, Grants: grants, Snapshot: s})
}

func TestEdits(t *testing.T) {
	tree := fixturetest.Start(t, "n150-2")
	m := open(t, tree, "")
	r, err := prepare(t, m, "0100018511723001", "0100018511723000")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, n := range r.GetEdits().GetDeviceNodes() {
		paths = append(paths, n.GetPath())
	}
	if !slices.Equal(paths, []string{"/dev/tenstorrent/9", "/dev/tenstorrent/10"}) || r.GetAttached()[0].GetDeviceId() != "0100018511723000" {
		t.Errorf("nodes %q, %v", paths, r.GetAttached())
	}
	if e := r.GetEdits(); len(e.GetMounts()) != 2 || !e.GetMounts()[0].GetOptional() || len(e.GetCapabilities()) > 0 {
		t.Errorf("%v", e)
	}
	r, err = prepare(t, open(t, tree, `{"hugepages": false, "ipc_lock": true}`), "0100018511723000")
	if e := r.GetEdits(); err != nil || len(e.GetMounts()) > 0 || !slices.Equal(e.GetCapabilities(), []string{"CAP_IPC_LOCK"}) {
		t.Errorf("%v, %v", e, err)
	}
	// The board goes between the look and Prepare.
	s := scan(t, m)
	grants, err := accelerator.Grants(s, []*pb.Allocation{{Slot: "tt-n150.device", DeviceId: "0100018511723000", Amount: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Change("unplug"); err != nil {
		t.Fatal(err)
	}
	if r, err := m.Edit(t.Context(), &driver.Request{Grants: grants, Snapshot: s}); err == nil {
		t.Errorf("a board that is gone was handed out: %v", r)
	}
}

func TestMetrics(t *testing.T) {
	tree := fixturetest.Start(t, "n300-4")
	m := open(t, tree, "")
	s := scan(t, m)
	got := map[string]*pb.Metric{}
	for _, metric := range m.Sample(t.Context(), s) {
		if err := accelerator.ValidateMetric(key, metric); err != nil {
			t.Error(err)
		}
		got[metric.GetName()+" "+metric.GetDeviceId()] = metric
	}
	for name, want := range map[string]struct {
		value   float64
		quality pb.Metric_Quality
	}{
		"tenstorrent_power 87160100f3fb5a12":       {85, pb.Metric_MEASURED},
		"tenstorrent_util 87160100f3fb5a12":        {53.125, pb.Metric_ESTIMATED},
		"tenstorrent_temperature 87160100f3fb5a12": {44, pb.Metric_MEASURED},
		"tenstorrent_clock 87160100f3fb5a10":       {500, pb.Metric_MEASURED},
		"tenstorrent_power 0000043119209001":       {0, pb.Metric_UNAVAILABLE},
	} {
		if g := got[name]; g.GetValue() != want.value || g.GetQuality() != want.quality {
			t.Errorf("%s is %v, want %v", name, g, want)
		}
	}
	w := m.SampleWorkloads(t.Context(), s, &pb.WorkloadSet{Workloads: []*pb.Workload{
		{AllocationId: "a", Allocations: []*pb.Allocation{{DeviceId: "87160100f3fb5a12"}, {DeviceId: "gone"}}},
	}})
	if len(w) != 1 || len(w[0].GetMetrics()) != 4 || w[0].GetMetrics()[1].GetQuality() != pb.Metric_ATTRIBUTED || w[0].GetMetrics()[0].GetQuality() != pb.Metric_ESTIMATED {
		t.Errorf("%v", w)
	}
}

func TestBadSettings(t *testing.T) {
	for config, want := range map[string]string{
		`{"heartbeat_timeout_s": -1}`:   "heartbeat_timeout_s: -1 is not between 0 and 3600",
		`{"heartbeat_timeout_s": 3601}`: "heartbeat_timeout_s",
		`{"hugepage": true}`:            "hugepage",
		`{"ipc_lock": "yes"}`:           "ipc_lock",
	} {
		if _, err := (vendor{}).Open(driver.NewHost(nil), []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

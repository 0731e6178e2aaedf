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
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

// bed is a simulated machine with the opened driver.
type bed struct {
	*testing.T
	*fixture.Tree
	m *machine
}

func newBed(t *testing.T, name, config string) bed {
	t.Helper()
	tree := fixturetest.Start(t, name)
	return bed{t, tree, bench.Open(t, tree.Roots(), config)}
}

// scan returns the snapshot, and its devices by id.
func (b bed) scan() (*pb.DeviceSnapshot, map[string]*pb.Device) {
	b.Helper()
	s := bench.Scan(b.T, b.m)
	return s, driver.ByID(s)
}

func (b bed) write(path, content string) {
	b.Helper()
	if err := b.Write(path, content); err != nil {
		b.Fatal(err)
	}
}

func (b bed) edit(ids ...string) *pb.PrepareResponse {
	b.Helper()
	s, _ := b.scan()
	return drivertest.Edit(b.T, b.m, drivertest.Request(b.T, s, drivertest.Whole(drivertest.Pick(b.T, s, ids...)...)...))
}

func TestMI250XIsTwoDevicesOfOneCard(t *testing.T) {
	s, all := newBed(t, "mi250x-4", "").scan()
	d := s.GetDevices()
	old := all["8e2b6f1c00d3a745"]
	if old.GetAllocatable() || !strings.Contains(strings.Join(old.GetRejectReasons(), " "), "older than the MI250X") || old.NumaNode != nil {
		t.Errorf("the MI210: %v", old)
	}
	a, b := d[1], d[2] // the MI210 is the first on the bus
	if a.GetSerial() != b.GetSerial() || !slices.Equal(a.GetGroups(), b.GetGroups()) || a.GetId() == b.GetId() {
		t.Errorf("two dies: %v, %v", a, b)
	}
	if a.GetProcessingUnits() != 110 || a.GetMemoryBytes() != 68702699520 || a.GetAttributes()["architecture"] != "gfx90a" || a.GetModel() != "AMD Instinct MI250X" {
		t.Errorf("a die: %v", a)
	}
	distance := map[string]uint32{}
	for _, l := range s.GetLinks() {
		if l.GetA() == a.GetId() {
			distance[l.GetB()] = l.GetDistance()
		}
	}
	if len(distance) != 8 || distance[b.GetId()] >= distance[d[3].GetId()] || distance[d[3].GetId()] >= distance[old.GetId()] {
		t.Errorf("distances from %s: %v", a.GetId(), distance)
	}
	_, all = newBed(t, "mi250x-4", `{"additional_device_ids": ["740f"]}`).scan()
	if old := all["8e2b6f1c00d3a745"]; !old.GetAllocatable() {
		t.Errorf("the MI210 although it is allowed: %v", old)
	}
}

func TestPartitionsShareTheirCard(t *testing.T) {
	b := newBed(t, "mi300x-cpx", "")
	s, all := b.scan()
	card := s.GetDevices()[0]
	if card.GetAllocatable() || len(s.GetCounters()) != 8 || s.GetCounters()[0].GetCounters()["xcc"] != "8" {
		t.Errorf("card %v, counters %v", card, s.GetCounters())
	}
	for i := range 8 {
		d := all[fmt.Sprintf("%s/%d", card.GetId(), i)]
		if d.GetParentId() != card.GetId() || d.GetProcessingUnits() != 38 || d.GetConsumes()[0].GetAmounts()["xcc"] != "1" ||
			d.GetAttributes()["node"] != fmt.Sprintf("dri/renderD%d", 128+i) {
			t.Errorf("partition %d: %v", i, d)
		}
	}
	if n := len(s.GetLinks()); n != 64*63/2 {
		t.Errorf("%d links", n)
	}
}

func TestContainerCountsFromZero(t *testing.T) {
	b := newBed(t, "mi300x-cpx", "")
	s, _ := b.scan()
	card := s.GetDevices()[9].GetId() // the second partition
	r := b.edit(card+"/3", s.GetDevices()[1].GetId())
	paths := drivertest.Nodes(r)
	if !slices.Equal(paths, []string{"/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD139"}) {
		t.Errorf("nodes %v", paths)
	}
	if e := r.GetEdits(); e.GetEnv()["HIP_VISIBLE_DEVICES"] != "0,1" || e.GetEnv()["ROCR_VISIBLE_DEVICES"] != "0,1" || len(e.GetSyscalls()) > 0 {
		t.Errorf("edits %v", e)
	}
	if r.GetAttached()[1].GetDeviceId() != card+"/3" {
		t.Errorf("attached %v", r.GetAttached())
	}
	if err := b.Remove("dev/dri/renderD139"); err != nil {
		t.Fatal(err)
	}
	if _, all := b.scan(); all[card+"/3"].GetAllocatable() {
		t.Error("a partition without its node is given away")
	}
}

func TestContainerMemory(t *testing.T) {
	b := newBed(t, "mi300x-8-spx", "")
	s, _ := b.scan()
	d := s.GetDevices()[1]
	kfd := "sys/class/kfd/kfd/proc/4242/"
	b.write(kfd+"vram_"+d.GetAttributes()["gpu_id"], "1048576\n")
	b.write("proc/4243/fdinfo/7", "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t9\ndrm-memory-vram:\t3072 KiB\n")
	b.write("proc/4243/fdinfo/8", "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t9\ndrm-memory-vram:\t3072 KiB\n")
	for _, c := range []string{"7", "8"} {
		if err := symlink(b.Dir+"/proc/4243/fd", c, "/dev/dri/renderD136"); err != nil {
			t.Fatal(err)
		}
	}
	set := &pb.WorkloadSet{PerProcess: true, Workloads: []*pb.Workload{{
		AllocationId: "a", HostPids: []int32{4242, 4243, 4244},
		Allocations: []*pb.Allocation{{Slot: whole, DeviceId: d.GetId(), Amount: "1"}},
	}, {AllocationId: "b", Allocations: []*pb.Allocation{{Slot: whole, DeviceId: d.GetId(), Amount: "1"}}}}}
	all := b.m.SampleWorkloads(t.Context(), s, set)
	mem := all[0].GetMetrics()[0]
	if mem.GetValue() != 4<<20 || mem.GetQuality() != pb.Metric_MEASURED || len(all[0].GetProcesses()) != 2 {
		t.Errorf("processes use %v, %v", mem, all[0].GetProcesses())
	}
	if busy := all[0].GetMetrics()[1]; busy.GetValue() != 11 || busy.GetQuality() != pb.Metric_ATTRIBUTED {
		t.Errorf("busy %v", busy)
	}
	if mem := all[1].GetMetrics()[0]; mem.GetQuality() != pb.Metric_ATTRIBUTED || mem.GetValue() != 297795584+1<<30 {
		t.Errorf("processes without an owner: %v", mem)
	}
}

func TestOccupancyOfPartitions(t *testing.T) {
	b := newBed(t, "mi300x-cpx", "")
	s, _ := b.scan()
	d := s.GetDevices()[2]
	b.write("sys/class/kfd/kfd/proc/77/stats_"+d.GetAttributes()["gpu_id"]+"/cu_occupancy", "19\n")
	for _, m := range b.m.Sample(t.Context(), s) {
		if m.GetDeviceId() == d.GetId() && m.GetName() == "rocm_util" && (m.GetValue() != 50 || m.GetQuality() != pb.Metric_ESTIMATED) {
			t.Errorf("%v", m)
		}
	}
}

// TestGarbage corrupts one file after another. Devices can be rejected, but others must not be
// affected.
func TestGarbage(t *testing.T) {
	b := newBed(t, "mi250x-4", "")
	files := b.Files()
	for _, file := range files {
		if other := strings.Contains(file, "0000:") || strings.Contains(file, "nodes/"); other && !strings.Contains(file, "0000:c1:00.0") && !strings.Contains(file, "nodes/4/") {
			continue // the files of one device represent those of all
		}
		old := b.Machine.Files[file]
		for _, garbage := range []string{"", "\x00\xff", strings.Repeat("9", 70000), "-1", "simd_count 99999999999999999999\nlocation_id x"} {
			b.write(file, garbage)
			s, _ := b.scan()
			good := 0
			for _, d := range s.GetDevices() {
				if d.GetAllocatable() {
					good++
				}
			}
			if good < 7 || good > 8 || len(s.GetDevices()) < 8 {
				t.Errorf("%s is %.20q: %d of %d devices are good", file, garbage, good, len(s.GetDevices()))
			}
		}
		b.write(file, old)
	}
}

func TestUnboundAndDoubled(t *testing.T) {
	b := newBed(t, "mi300x-8-spx", "")
	s, _ := b.scan()
	first := s.GetDevices()[0].GetId()
	if err := b.Remove("sys/class/kfd/kfd/topology/nodes/2"); err != nil {
		t.Fatal(err)
	}
	_, all := b.scan()
	drivertest.Judged(t, all[first], "does not show it")
	b.write("sys/class/kfd/kfd/topology/nodes/3/properties", strings.ReplaceAll(b.Machine.Files["sys/class/kfd/kfd/topology/nodes/3/properties"], "render_minor 136", "render_minor 144"))
	s, _ = b.scan()
	if d := s.GetDevices(); d[1].GetAllocatable() || d[2].GetAllocatable() || !d[3].GetAllocatable() {
		t.Errorf("two devices of one node: %v, %v", d[1], d[2])
	}
}

func TestSettings(t *testing.T) {
	bench.Refuses(t, map[string]string{
		`{"additional_device_ids": ["740F"]}`:                                       "additional_device_ids[0]",
		`{"additional_device_ids": ["740f" ` + strings.Repeat(`,"740f"`, 64) + `]}`: "65 are more than 64",
		`{"numa_syscalls": 1}`:                                                      "numa_syscalls",
		`{"numa": true}`:                                                            "numa",
	})
	r := newBed(t, "mi300x-8-spx", `{"numa_syscalls": true}`).edit("5000000000000000")
	if !slices.Contains(r.GetEdits().GetSyscalls(), "mbind") {
		t.Errorf("%v", r)
	}
}

func symlink(dir, name, to string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Symlink(to, filepath.Join(dir, name))
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// TestHGX runs the plugin on a machine of package fixture with its library. A process is bound to
// the first NVML that it loads, so there is only one machine.
func TestHGX(t *testing.T) {
	tree := fixturetest.Start(t, hgx)
	v := newVendor(loadNVML)
	defer v.close()
	p := on(t, v, tree.Roots(), string(tree.Config()))
	s := p.now
	t.Run("topology", func(t *testing.T) { testTopology(t, s) })
	t.Run("instances overlap", func(t *testing.T) { testOverlap(t, s) })
	r, err := p.prepare(t, &pb.PrepareRequest{AllocationId: "1", Allocations: []*pb.Allocation{
		{DeviceId: s.GetDevices()[0].GetId(), Slot: "cuda.device", Amount: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("nodes", func(t *testing.T) { testNodes(t, r.GetEdits()) })
	t.Run("toolkits stay out", func(t *testing.T) { testToolkits(t, r.GetEdits(), tree.Roots().GetDriver()) })
}

// byProfile returns the instances of a profile.
func byProfile(s *pb.DeviceSnapshot, profile string) []*pb.Device {
	return slices.DeleteFunc(slices.Clone(s.GetDevices()), func(d *pb.Device) bool { return d.GetAttributes()["mig_profile"] != profile })
}

func testTopology(t *testing.T, s *pb.DeviceSnapshot) {
	kinds := map[string]int{}
	for _, l := range s.GetLinks() {
		kinds[l.GetType().String()]++
	}
	// Seven GPUs are connected through the switches. The one in MIG mode and the old card are not:
	// 7+8.
	if diff := cmp.Diff(map[string]int{"NVLINK": 21, "PCIE": 15}, kinds); diff != "" {
		t.Error(diff)
	}
	first, old := s.GetDevices()[0], s.GetDevices()[len(s.GetDevices())-1]
	if first.GetNumaNode() != 0 || first.GetPcieRoot() != "pci0000:15" || first.GetAttributes()["cuda"] != "12.8" || first.GetAttributes()["driver"] != "570.86.15" {
		t.Errorf("the first is %v", first)
	}
	if old.NumaNode != nil || !cmp.Equal(old.GetRejectReasons(), []string{"compute capability 7.0 is below 7.5"}) {
		t.Errorf("the old card is %v", old)
	}
}

func testNodes(t *testing.T, e *pb.ContainerEdits) {
	var nodes []string
	for _, n := range e.GetDeviceNodes() {
		nodes = append(nodes, n.GetPath())
	}
	// The number is the kernel's, not NVML's.
	if diff := cmp.Diff([]string{"/dev/nvidia4", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}, nodes); diff != "" {
		t.Error(diff)
	}
}

func testOverlap(t *testing.T, s *pb.DeviceSnapshot) {
	pair := byProfile(s, "1c.2g.20gb")
	if len(pair) != 2 || len(s.GetCounters()) != 1 {
		t.Fatalf("%d instances of a pair, counters %v", len(pair), s.GetCounters())
	}
	set := s.GetCounters()[0]
	if diff := cmp.Diff(map[string]string{"gi2": "1", "gi3": "1", "gi5": "1"}, set.GetCounters()); diff != "" {
		t.Error(diff)
	}
	for _, d := range pair {
		if d.GetParentId() != set.GetName() || len(d.GetConsumes()) != 1 || d.GetConsumes()[0].GetAmounts()["gi5"] != "1" {
			t.Errorf("%s is cut from %s and consumes %v", d.GetId(), d.GetParentId(), d.GetConsumes())
		}
	}
	for _, d := range s.GetDevices() {
		if d.GetId() == set.GetName() && (d.GetAllocatable() || !cmp.Equal(d.GetConsumes()[0].GetAmounts(), set.GetCounters())) {
			t.Errorf("the GPU itself is %v", d)
		}
	}
}

// testToolkits proves that images with different toolkits can be used on one machine: a container
// gets the host's driver, but no library, program or directory of the host's toolkits.
func testToolkits(t *testing.T, e *pb.ContainerEdits, root string) {
	var got []string
	for _, m := range e.GetMounts() {
		got = append(got, filepath.Base(m.GetTarget()))
		text, err := os.ReadFile(m.GetSource())
		if err != nil || strings.HasPrefix(string(text), "toolkit") || strings.HasPrefix(string(text), "graphics") ||
			!strings.HasPrefix(m.GetSource(), root) {
			t.Errorf("%s is mounted at %s: %v", m.GetSource(), m.GetTarget(), err)
		}
	}
	const v = ".so.570.86.15"
	if diff := cmp.Diff([]string{"libcuda.so", "libcuda.so.1", "libcuda" + v, "libcudadebugger" + v, "libnvidia-cfg" + v, "libnvidia-gpucomp" + v,
		"libnvidia-ml.so.1", "libnvidia-nvvm" + v, "libnvidia-opencl" + v, "libnvidia-ptxjitcompiler" + v, "nvidia-smi"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{containerLibs}, e.GetLibraryDirs()); diff != "" {
		t.Error(diff)
	}
	for name := range e.GetEnv() {
		if strings.HasPrefix(name, "CUDA_") || name == "PATH" || name == "LD_LIBRARY_PATH" {
			t.Errorf("%s would be the host's", name)
		}
	}
}

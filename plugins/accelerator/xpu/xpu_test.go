package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

const (
	first = "0000:29:00.0"
	arc   = "0000:b1:00.0"
)

func TestDeviceIsDescribed(t *testing.T) {
	all := bench.Devices(t, bench.Open(t, fixturetest.Start(t, "max1100-4").Roots(), ""))
	d := all[first]
	if d.GetModel() != "Intel Data Center GPU Max 1100" || d.GetMemoryBytes() != 48<<30 || d.GetNumaNode() != 0 || d.GetPcieRoot() != "pci0000:29" ||
		d.GetAttributes()["node"] != "dri/renderD128" || d.GetAttributes()["card"] != "dri/card1" || d.GetCapacity()[whole] != "1" {
		t.Errorf("%v", d)
	}
	if d := all[arc]; d.GetModel() != "Intel Arc A770" || d.GetMemoryBytes() != 17079205888 || d.NumaNode != nil {
		t.Errorf("%v", d)
	}
	if all["0000:00:02.0"] != nil || all["0000:00:1f.0"] != nil {
		t.Errorf("a device that is not a discrete GPU is shown: %v", all)
	}
	drivertest.Judged(t, all["0000:ca:00.0"], "2 virtual functions")
}

func TestRejections(t *testing.T) {
	const pci = "sys/devices/pci0000:29/0000:29:00.0/"
	for name, row := range map[string]struct{ file, text, reason string }{
		"unknown GPU":  {pci + "device", "0x1234\n", "is not a discrete GPU that the plugin knows"},
		"no id":        {pci + "device", "", "cannot be read"},
		"garbage id":   {pci + "device", "\xff\xfe", "cannot be read"},
		"no node":      {"dev/dri/renderD128", "", "no such file"},
		"node is file": {"dev/dri/renderD128", "x", "is not a device"},
		"divided":      {pci + "sriov_numvfs", "4\n", "4 virtual functions"},
		"firmware":     {pci + "survivability_mode", "Boot\n", "survivability mode"},
		"hot":          {pci + "hwmon/hwmon3/temp2_input", "106000\n", "106 °C, of at most 105"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fixturetest.Start(t, "max1100-4")
			drivertest.Spoil(t, tree, row.file, row.text)
			all := bench.Devices(t, bench.Open(t, tree.Roots(), ""))
			drivertest.Judged(t, all[first], row.reason)
			drivertest.Judged(t, all["0000:3a:00.0"], "")
		})
	}
}

func TestOtherGPUsNeedASetting(t *testing.T) {
	tree := fixturetest.Start(t, "max1100-4")
	drivertest.Spoil(t, tree, "sys/devices/pci0000:29/0000:29:00.0/device", "0x1234\n")
	drivertest.Judged(t, bench.Devices(t, bench.Open(t, tree.Roots(), `{"additional_device_ids": ["1234"]}`))[first], "")
	bench.Refuses(t, map[string]string{`{"additional_device_ids": ["0x1234"]}`: "additional_device_ids", `{"depth": 1}`: "depth"})
}

func TestEdits(t *testing.T) {
	m := bench.Open(t, fixturetest.Start(t, "max1100-4").Roots(), "")
	s := bench.Scan(t, m)
	r := drivertest.Edit(t, m, drivertest.Request(t, s, drivertest.Whole(drivertest.Pick(t, s, first, arc)...)...))
	if got := drivertest.Nodes(r); !slices.Equal(got, []string{"/dev/dri/renderD128", "/dev/dri/card1", "/dev/dri/renderD131", "/dev/dri/card4"}) {
		t.Errorf("nodes %q", got)
	}
	if e := r.GetEdits(); len(e.GetEnv())+len(e.GetMounts())+len(e.GetCapabilities()) > 0 || r.GetResourceData()["XPU_DEVICES"] != first+","+arc {
		t.Errorf("%v", r)
	}
}

func TestMetrics(t *testing.T) {
	tree := fixturetest.Start(t, "max1100-4")
	m := bench.Open(t, tree.Roots(), "")
	now := time.Unix(1000, 0)
	m.now = func() time.Time { return now }
	s := bench.Scan(t, m)
	bench.Measures(t, m, s, map[string]string{
		"xpu_power " + first:       "0 UNAVAILABLE", // requires two reads
		"xpu_temperature " + first: "41 of 105 MEASURED",
		"xpu_temperature " + arc:   "44 MEASURED",
		"xpu_clock " + first:       "1000 MEASURED",
		"xpu_clock " + arc:         "2050 MEASURED",
	})
	now = now.Add(5 * time.Second)
	drivertest.Spoil(t, tree, "sys/devices/pci0000:29/0000:29:00.0/hwmon/hwmon3/energy1_input", "5600000000\n")
	bench.Measures(t, m, s, map[string]string{"xpu_power " + first: "120 of 300 MEASURED"})
	now = now.Add(5 * time.Second) // the counter has restarted
	drivertest.Spoil(t, tree, "sys/devices/pci0000:29/0000:29:00.0/hwmon/hwmon3/energy1_input", "1\n")
	bench.Measures(t, m, s, map[string]string{"xpu_power " + first: "0 UNAVAILABLE"})
}

// opens simulates a process with an open GPU.
func opens(t *testing.T, tree *fixture.Tree, pid, fd int, node, info string) {
	t.Helper()
	if err := tree.Write(fmt.Sprintf("proc/%d/fdinfo/%d", pid, fd), info); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(tree.Dir, fmt.Sprintf("proc/%d/fd/%d", pid, fd))
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/dri/"+node, link); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

func TestWorkloads(t *testing.T) {
	tree := fixturetest.Start(t, "max1100-4")
	m := bench.Open(t, tree.Roots(), "")
	now := time.Unix(1000, 0)
	m.now = func() time.Time { return now }
	s := bench.Scan(t, m)
	xe := func(cycles, of int) string {
		return fmt.Sprintf("drm-driver:\txe\ndrm-client-id:\t7\ndrm-pdev:\t%s\ndrm-resident-vram0:\t2097152 KiB\ndrm-resident-gtt:\t4096 KiB\n"+
			"drm-cycles-ccs:\t%d\ndrm-total-cycles-ccs:\t%d\ndrm-engine-capacity-ccs:\t2\n", first, cycles, of)
	}
	i915 := func(ns int) string {
		return fmt.Sprintf("drm-driver:\ti915\ndrm-client-id:\t9\ndrm-pdev:\t%s\ndrm-total-local0:\t1024 MiB\ndrm-engine-compute:\t%d ns\n", arc, ns)
	}
	opens(t, tree, 41, 5, "renderD128", xe(1000, 10000))
	opens(t, tree, 42, 5, "renderD128", xe(1000, 10000)) // the same client, inherited
	opens(t, tree, 42, 6, "renderD131", i915(0))
	set := &pb.WorkloadSet{PerProcess: true, Workloads: []*pb.Workload{{
		AllocationId: "a", HostPids: []int32{41, 42}, Allocations: []*pb.Allocation{{DeviceId: first}, {DeviceId: arc}},
	}}}
	look := func(want ...string) {
		t.Helper()
		var got []string
		w := m.SampleWorkloads(t.Context(), s, set)[0]
		for _, x := range w.GetMetrics() {
			got = append(got, fmt.Sprint(x.GetName(), " ", x.GetValue(), " ", x.GetQuality()))
		}
		if !slices.Equal(got, want) || len(w.GetProcesses()) != 2 {
			t.Errorf("%q, want %q; %d processes", got, want, len(w.GetProcesses()))
		}
	}
	look("xpu_mem 2.147483648e+09 MEASURED", "xpu_util 0 UNAVAILABLE", "xpu_mem 1.073741824e+09 MEASURED", "xpu_util 0 UNAVAILABLE")
	now = now.Add(2 * time.Second)
	opens(t, tree, 41, 5, "renderD128", xe(2000, 12000)) // 1,000 of 2,000 cycles, of two engines
	opens(t, tree, 42, 6, "renderD131", i915(1_000_000_000))
	look("xpu_mem 2.147483648e+09 MEASURED", "xpu_util 25 MEASURED", "xpu_mem 1.073741824e+09 MEASURED", "xpu_util 50 MEASURED")
}

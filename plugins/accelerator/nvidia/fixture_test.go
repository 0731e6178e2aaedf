package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	simulated "github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
)

var v100 = gpus.Config{Name: "Tesla V100-SXM2-16GB", CudaMajor: 7, MemoryMB: 16384}

// host is a simulated host: go-nvml's mock of NVML with the calls that it lacks, and the file trees
// of the machine.
type host struct {
	*simulated.Server
	root    string
	library string // of the limit
	events  chan nvml.EventData
}

func newHost(t *testing.T, cards ...gpus.Config) *host {
	t.Helper()
	s, err := simulated.New(simulated.WithGPUs(cards...), simulated.WithDriverVersion("570.86.15"),
		simulated.WithNVMLVersion("12.570"), simulated.WithCUDADriverVersion(12080))
	if err != nil {
		t.Fatal(err)
	}
	m := &host{Server: s, root: t.TempDir(), events: make(chan nvml.EventData, 8)}
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{
			FreeFunc: func() nvml.Return { return nvml.SUCCESS },
			WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
				select {
				case e := <-m.events:
					return e, nvml.SUCCESS
				default:
					return nvml.EventData{}, nvml.ERROR_UNKNOWN // a failed Wait must be survived
				}
			},
		}, nvml.SUCCESS
	}
	for i := range cards {
		m.complete(i)
		m.file(t, fmt.Sprintf("sys/bus/pci/devices/0000:%02x:00.0/numa_node", i+1), fmt.Sprintf("%d\n", i/2))
		m.file(t, fmt.Sprintf("sys/bus/pci/devices/0000:%02x:00.0/vendor", i+1), "0x10de\n")
	}
	for _, lib := range []string{"libcuda.so.570.86.15", "libnvidia-ml.so.570.86.15", "libnvidia-ptxjitcompiler.so.570.86.15", "libGL.so.1"} {
		m.file(t, "driver/usr/lib64/"+lib, "library")
	}
	for _, l := range []string{"libcuda.so", "libnvidia-ml.so"} {
		if err := os.Symlink(l+".570.86.15", filepath.Join(m.root, "driver/usr/lib64", l+".1")); err != nil {
			t.Fatal(err)
		}
	}
	m.file(t, "driver/usr/bin/nvidia-smi", "program")
	m.nodes(t, "nvidiactl", "nvidia-uvm")
	for i := range cards {
		m.nodes(t, fmt.Sprintf("nvidia%d", i))
	}
	return m
}

func (m *host) gpu(i int) *simulated.Device { return m.Devices[i].(*simulated.Device) }

// complete implements the calls on which the mock panics.
func (m *host) complete(i int) {
	d := m.gpu(i)
	d.UUID = fmt.Sprintf("GPU-%08d-0000-0000-0000-000000000000", i)
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		var p nvml.PciInfo
		for k, c := range []byte(fmt.Sprintf("00000000:%02X:00.0", i+1)) {
			p.BusId[k] = int8(c)
		}
		return p, nvml.SUCCESS
	}
	d.GetSerialFunc = func() (string, nvml.Return) { return fmt.Sprintf("16500%d", i), nvml.SUCCESS }
	d.GetNumGpuCoresFunc = func() (int, nvml.Return) { return 16896, nvml.SUCCESS } // H100: 132 x 128
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
	d.GetP2PStatusFunc = func(o nvml.Device, c nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
		if c == nvml.P2P_CAPS_INDEX_NVLINK && (d.Index/2 != o.(*simulated.Device).Index/2) {
			return nvml.P2P_STATUS_NOT_SUPPORTED, nvml.SUCCESS
		}
		return nvml.P2P_STATUS_OK, nvml.SUCCESS
	}
	d.GetTopologyCommonAncestorFunc = func(nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
		return nvml.TOPOLOGY_SYSTEM, nvml.SUCCESS
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 40, Memory: 10}, nvml.SUCCESS
	}
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 710_000, nvml.SUCCESS }
	d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 700_000, nvml.SUCCESS }
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 60, nvml.SUCCESS }
	d.GetTemperatureThresholdFunc = func(nvml.TemperatureThresholds) (uint32, nvml.Return) { return 90, nvml.SUCCESS }
	d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		return 3 * uint64(1-kind), nvml.SUCCESS // corrected errors
	}
	d.GetClockInfoFunc = func(kind nvml.ClockType) (uint32, nvml.Return) { return 1000 + uint32(kind), nvml.SUCCESS }
	d.GetFieldValuesFunc = func(f []nvml.FieldValue) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.SUCCESS }
	d.GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
		return nil, nvml.ERROR_NOT_FOUND
	}
}

// partition turns MIG mode on and creates instances of 1g.10gb.
func (m *host) partition(t *testing.T, card, n int) {
	t.Helper()
	d := m.gpu(card)
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i >= n {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return &mock.Device{
			GetUUIDFunc:              func() (string, nvml.Return) { return fmt.Sprintf("MIG-%d-%d", card, i), nvml.SUCCESS },
			GetNameFunc:              func() (string, nvml.Return) { return d.Config.Name + " MIG 1g.10gb", nvml.SUCCESS },
			GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return 7 + i, nvml.SUCCESS },
			GetComputeInstanceIdFunc: func() (int, nvml.Return) { return 0, nvml.SUCCESS },
			GetAttributesFunc: func() (nvml.DeviceAttributes, nvml.Return) {
				return nvml.DeviceAttributes{MultiprocessorCount: 16, GpuInstanceSliceCount: 1, MemorySizeMB: 9984}, nvml.SUCCESS
			},
			GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
				return nvml.Memory{Total: 9984 << 20, Used: 1 << 30}, nvml.SUCCESS
			},
			GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.SUCCESS },
		}, nvml.SUCCESS
	}
	for i := range n {
		at := fmt.Sprintf("proc/driver/nvidia/capabilities/gpu%d/mig/gi%d", card, 7+i)
		m.file(t, at+"/access", fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: 292\n", 60+i))
		m.file(t, at+"/ci0/access", fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: 292\n", 80+i))
		m.nodes(t, fmt.Sprintf("nvidia-caps/nvidia-cap%d", 60+i), fmt.Sprintf("nvidia-caps/nvidia-cap%d", 80+i))
	}
}

// nodes creates device files, each a copy of /dev/null.
func (m *host) nodes(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		path := filepath.Join(m.root, "dev", n)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/null", path); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *host) file(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *host) roots() *pb.Roots {
	at := func(s string) string { return filepath.Join(m.root, s) }
	return &pb.Roots{Sys: at("sys"), Dev: at("dev"), Proc: at("proc"), Driver: at("driver"), State: at("state"), Path: []string{at("bin"), "/usr/bin", "/bin"}}
}

// bed is the driver on a machine that the test scans explicitly. The suite tests the common code
// around a driver.
type bed struct {
	*machine
	now *pb.DeviceSnapshot
}

// start opens the machine with settings.
func (m *host) start(t *testing.T, config string) *bed {
	t.Helper()
	v := newVendor(func(string) nvml.Interface { return m })
	v.library = m.library
	t.Cleanup(v.close)
	return on(t, v, m.roots(), config)
}

func on(t *testing.T, v *vendor, roots *pb.Roots, config string) *bed {
	t.Helper()
	p := &bed{machine: drivertest.Bench[*machine]{Driver: v}.Open(t, roots, config)}
	look(t, p)
	return p
}

// look scans the machine again and returns the validated snapshot.
func look(t *testing.T, p *bed) *pb.DeviceSnapshot {
	t.Helper()
	p.now = drivertest.Bench[*machine]{Driver: p.vendor}.Scan(t, p.machine)
	return p.now
}

// prepare calls the driver like the common code does.
func (p *bed) prepare(t *testing.T, req *pb.PrepareRequest) (*pb.PrepareResponse, error) {
	t.Helper()
	grants, err := accelerator.Grants(p.now, req.GetAllocations())
	if err != nil {
		return nil, err
	}
	return p.Edit(t.Context(), &driver.Request{PrepareRequest: req, Grants: grants, Snapshot: p.now})
}

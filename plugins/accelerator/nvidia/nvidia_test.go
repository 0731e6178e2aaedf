package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

var h100 = gpus.H100_SXM5_80GB

func TestDiscovery(t *testing.T) {
	m := newHost(t, h100, h100, h100, h100)
	s := look(t, m.start(t, ""))
	if len(s.GetDevices()) != 4 {
		t.Fatalf("%d devices", len(s.GetDevices()))
	}
	d := s.GetDevices()[3]
	node := int32(1)
	want := &pb.Device{Id: "GPU-00000003-0000-0000-0000-000000000000", Model: h100.Name, Serial: "165003",
		PciAddress: "0000:04:00.0", NumaNode: &node, MemoryBytes: 80 << 30, ProcessingUnits: 132}
	got := &pb.Device{Id: d.Id, Model: d.Model, Serial: d.Serial, PciAddress: d.PciAddress, NumaNode: d.NumaNode,
		MemoryBytes: d.MemoryBytes, ProcessingUnits: d.ProcessingUnits}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"cuda.device": "1", "cuda.shares": "1", "cuda.mem": "85899345920"}, d.GetCapacity()); diff != "" {
		t.Error(diff)
	}
	if d.GetAttributes()["compute_capability"] != "9.0" || !d.GetAllocatable() || s.GetDriverInfo()["cuda"] != "12.8" {
		t.Errorf("device %v, driver %v", d, s.GetDriverInfo())
	}
	near := map[string]pb.Link_Type{}
	for _, l := range s.GetLinks() {
		near[l.GetA()[11:12]+l.GetB()[11:12]] = l.GetType()
		if !l.GetP2P() || (l.GetType() == pb.Link_NVLINK) != (l.GetDistance() == 1) {
			t.Errorf("link %v", l)
		}
	}
	if len(near) != 6 || near["01"] != pb.Link_NVLINK && near["01"] == near["12"] {
		t.Errorf("links %v", near)
	}
}

func TestMinimumModel(t *testing.T) {
	m := newHost(t, v100, h100)
	for config, want := range map[string][]bool{
		"":                                   {false, true},
		`{"min_compute_capability": "7.0"}`:  {true, true},
		`{"min_compute_capability": "10.0"}`: {false, false},
	} {
		s := look(t, m.start(t, config))
		for i, d := range s.GetDevices() {
			if d.GetAllocatable() != want[i] {
				t.Errorf("%s: %s allocatable %v: %v", config, d.GetModel(), d.GetAllocatable(), d.GetRejectReasons())
			}
		}
	}
	d := look(t, m.start(t, "")).GetDevices()[0]
	if want := []string{"compute capability 7.0 is below 7.5"}; !cmp.Equal(d.GetRejectReasons(), want) {
		t.Errorf("reasons %v", d.GetRejectReasons())
	}
}

func TestUnreadableDeviceKeepsTheOthers(t *testing.T) {
	for name, spoil := range map[string]func(m *host){
		"memory": func(m *host) {
			m.gpu(0).GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_UNKNOWN }
		},
		"uuid": func(m *host) {
			m.gpu(0).GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_UNKNOWN }
		},
		"compute capability": func(m *host) {
			m.gpu(0).GetCudaComputeCapabilityFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_UNKNOWN }
		},
		"device": func(m *host) {
			get := m.DeviceGetHandleByIndexFunc
			m.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
				if i == 0 {
					return nil, nvml.ERROR_UNKNOWN
				}
				return get(i)
			}
		},
	} {
		m := newHost(t, h100, h100)
		spoil(m)
		ok := 0
		for _, d := range look(t, m.start(t, "")).GetDevices() {
			if d.GetAllocatable() {
				ok++
			} else if !strings.HasPrefix(d.GetRejectReasons()[0], name) {
				t.Errorf("%s: reasons %v", name, d.GetRejectReasons())
			}
		}
		if ok != 1 {
			t.Errorf("%s: %d usable devices, want 1", name, ok)
		}
	}
}

func TestLostDevice(t *testing.T) {
	m := newHost(t, h100, h100)
	p := m.start(t, "")
	id := look(t, p).GetDevices()[0].GetId()
	m.gpu(0).GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	for _, d := range look(t, p).GetDevices() {
		if d.GetId() == id && d.GetHealth() == pb.Health_HEALTH_LOST && !d.GetAllocatable() {
			return
		}
	}
	t.Errorf("%s is not shown as lost: %v", id, p.now)
}

func TestMigInstances(t *testing.T) {
	m := newHost(t, h100, h100)
	m.partition(t, 0, 2)
	p := m.start(t, "")
	s := look(t, p)
	capacity := map[string]string{}
	for _, d := range s.GetDevices() {
		for slot, n := range d.GetCapacity() {
			if d.GetAllocatable() {
				capacity[d.GetId()+" "+slot] = n
			}
		}
	}
	want := map[string]string{
		"MIG-0-0 cuda.device:1g.10gb-mig": "1", "MIG-0-1 cuda.device:1g.10gb-mig": "1",
		"GPU-00000001-0000-0000-0000-000000000000 cuda.device": "1", "GPU-00000001-0000-0000-0000-000000000000 cuda.shares": "1",
		"GPU-00000001-0000-0000-0000-000000000000 cuda.mem": "85899345920",
	}
	if diff := cmp.Diff(want, capacity); diff != "" {
		t.Error(diff)
	}
	r, err := p.prepare(t, &pb.PrepareRequest{AllocationId: "1", Allocations: []*pb.Allocation{
		{DeviceId: "MIG-0-1", Slot: "cuda.device:1g.10gb-mig", Amount: "1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range r.GetEdits().GetDeviceNodes() {
		nodes = append(nodes, n.GetPath())
	}
	if diff := cmp.Diff([]string{"/dev/nvidia-caps/nvidia-cap61", "/dev/nvidia-caps/nvidia-cap81", "/dev/nvidia0",
		"/dev/nvidiactl", "/dev/nvidia-uvm"}, nodes); diff != "" {
		t.Error(diff)
	}
	if a := r.GetAttached()[0]; a.GetMemoryBytes() != 9984<<20 || a.GetProcessingUnits() != 16 {
		t.Errorf("attached %v", a)
	}
}

func TestEdits(t *testing.T) {
	m := newHost(t, h100, h100)
	p := m.start(t, "")
	s := look(t, p)
	ask := func(id, slot, amount string) (*pb.PrepareResponse, error) {
		return p.prepare(t, &pb.PrepareRequest{AllocationId: id, Allocations: []*pb.Allocation{
			{DeviceId: s.GetDevices()[1].GetId(), Slot: slot, Amount: amount}}})
	}
	half, err := ask("half", "cuda.shares", "0.5")
	if err != nil {
		t.Fatal(err)
	}
	if err := accelerator.ValidateEdits(half.GetEdits()); err != nil {
		t.Error(err)
	}
	uuid := "GPU-00000001-0000-0000-0000-000000000000"
	if diff := cmp.Diff(map[string]string{
		"NVIDIA_VISIBLE_DEVICES": uuid, "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
		"BERTH_CUDA_ENFORCEMENT": "advisory", "BERTH_CUDA_SHARES": uuid + ":0.500", "BERTH_CUDA_MEMORY_LIMITS": uuid + ":42949672960",
	}, half.GetEdits().GetEnv()); diff != "" {
		t.Error(diff)
	}
	mounts := map[string]string{}
	for _, x := range half.GetEdits().GetMounts() {
		mounts[x.GetTarget()] = strings.TrimPrefix(x.GetSource(), m.root+"/driver")
		if x.GetWritable() {
			t.Errorf("%s can be written", x.GetTarget())
		}
	}
	const lib, at = "/usr/local/nvidia/lib64/", "/usr/lib64/"
	if diff := cmp.Diff(map[string]string{
		lib + "libcuda.so": at + "libcuda.so.570.86.15", lib + "libcuda.so.1": at + "libcuda.so.570.86.15", lib + "libcuda.so.570.86.15": at + "libcuda.so.570.86.15",
		lib + "libnvidia-ml.so.1": at + "libnvidia-ml.so.570.86.15", lib + "libnvidia-ml.so.570.86.15": at + "libnvidia-ml.so.570.86.15",
		lib + "libnvidia-ptxjitcompiler.so.570.86.15": at + "libnvidia-ptxjitcompiler.so.570.86.15", "/usr/bin/nvidia-smi": "/usr/bin/nvidia-smi",
	}, mounts); diff != "" {
		t.Error(diff)
	}
	whole, err := ask("whole", "cuda.device", "1")
	if err != nil {
		t.Fatal(err)
	}
	if env := whole.GetEdits().GetEnv(); env["BERTH_CUDA_ENFORCEMENT"] != "" {
		t.Errorf("a whole GPU is limited: %v", env)
	}
	if n := whole.GetEdits().GetDeviceNodes()[0]; n.GetPath() != "/dev/nvidia1" || n.GetHostPath() != filepath.Join(m.root, "dev/nvidia1") {
		t.Errorf("node %v", n)
	}
}

func TestLibrariesStayBelowTheDriverRoot(t *testing.T) {
	m := newHost(t, h100)
	if err := os.Symlink("/etc/passwd", filepath.Join(m.root, "driver/usr/lib64/libnvidia-cfg.so.1")); err != nil {
		t.Fatal(err)
	}
	p := m.start(t, "")
	if file, ok := libraries(p.Host)["libnvidia-cfg.so.1"]; ok {
		t.Errorf("%s would be mounted", file)
	}
}

func TestXid(t *testing.T) {
	m := newHost(t, h100, h100)
	p := m.start(t, "")
	send := func(card int, xid uint64) {
		m.events <- nvml.EventData{Device: m.gpu(card), EventType: nvml.EventTypeXidCriticalError, EventData: xid}
	}
	state := func(card int) string {
		d := look(t, p).GetDevices()[card]
		return strings.TrimSpace(d.GetHealth().String()[7:] + " " + d.GetHealthMessage())
	}
	reaches := func(card int, want string) {
		t.Helper()
		wait.Until(t, "the GPU is "+want, func() bool { return state(card) == want })
	}
	send(1, 31) // an error of a program
	send(0, 74)
	reaches(0, "DEGRADED XID 74")
	if d := p.now.GetDevices()[0]; !d.GetAllocatable() {
		t.Error("a degraded GPU is not given away")
	}
	send(0, 79)
	reaches(0, "LOST XID 79")
	send(0, 63) // a later, less severe event does not improve the health
	send(1, 48)
	reaches(1, "UNHEALTHY XID 48")
	if s := state(0); s != "LOST XID 79" {
		t.Errorf("GPU 0 is %q", s)
	}
	_, err := p.prepare(t, &pb.PrepareRequest{AllocationId: "1", Allocations: []*pb.Allocation{
		{DeviceId: p.now.GetDevices()[0].GetId(), Slot: "cuda.device", Amount: "1"}}})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a lost GPU was prepared: %v", err)
	}
	p = on(t, p.vendor, m.roots(), "")
	if s := state(0); s != "HEALTHY" {
		t.Errorf("after Configure GPU 0 is %q", s)
	}
}

func TestMetrics(t *testing.T) {
	m := newHost(t, h100)
	m.gpu(0).MemoryInfo.Used = 3 << 30
	p := m.start(t, "")
	look(t, p)
	got := map[string]float64{}
	for _, x := range p.Sample(t.Context(), p.now) {
		if err := accelerator.ValidateMetric("cuda", x); err != nil {
			t.Error(err)
		}
		got[x.GetName()] = x.GetValue()
	}
	want := map[string]float64{"cuda_mem": 3 << 30, "cuda_util": 40, "cuda_power": 710, "cuda_temperature": 60,
		"cuda_clock": 1001, "cuda_memory_clock": 1002, "cuda_ecc_corrected": 3, "cuda_ecc_uncorrected": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	m.gpu(0).GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 99}, nvml.ERROR_NOT_SUPPORTED
	}
	if x := p.Sample(t.Context(), p.now)[1]; x.GetQuality() != pb.Metric_UNAVAILABLE || x.GetValue() != 0 {
		t.Errorf("an unknown utilisation is reported as %v", x)
	}
}

func TestWorkloadsByProcess(t *testing.T) {
	m := newHost(t, h100)
	m.gpu(0).GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: 10, UsedGpuMemory: 1 << 30}, {Pid: 11, UsedGpuMemory: 2 << 30}, {Pid: 20, UsedGpuMemory: 4 << 30}}, nvml.SUCCESS
	}
	m.gpu(0).GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
		return []nvml.ProcessUtilizationSample{{Pid: 10, TimeStamp: 1, SmUtil: 90}, {Pid: 10, TimeStamp: 2, SmUtil: 30}, {Pid: 20, TimeStamp: 2, SmUtil: 50}}, nvml.SUCCESS
	}
	p := m.start(t, "")
	id := look(t, p).GetDevices()[0].GetId()
	measure := func(pids ...int32) map[string]float64 {
		w := p.SampleWorkloads(t.Context(), p.now, &pb.WorkloadSet{PerProcess: true, Workloads: []*pb.Workload{{AllocationId: "a", HostPids: pids,
			Allocations: []*pb.Allocation{{DeviceId: id, Slot: "cuda.shares", Amount: "0.5"}}}}})[0]
		out := map[string]float64{"processes": float64(len(w.GetProcesses()))}
		for _, x := range w.GetMetrics() {
			if err := accelerator.ValidateMetric("cuda", x); err != nil {
				t.Error(err)
			}
			if x.GetQuality() == pb.Metric_MEASURED {
				out[x.GetName()] = x.GetValue()
			}
		}
		return out
	}
	for _, tc := range []struct {
		pids []int32
		want map[string]float64
	}{
		{[]int32{10, 11, 12}, map[string]float64{"cuda_mem": 3 << 30, "cuda_util": 30, "processes": 2}},
		{[]int32{20}, map[string]float64{"cuda_mem": 4 << 30, "cuda_util": 50, "processes": 1}},
		{nil, map[string]float64{"cuda_mem": 0, "cuda_util": 0, "processes": 0}},
	} {
		if diff := cmp.Diff(tc.want, measure(tc.pids...)); diff != "" {
			t.Errorf("%v: %s", tc.pids, diff)
		}
	}
	m.gpu(0).GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: 10, UsedGpuMemory: math.MaxUint64}}, nvml.SUCCESS
	}
	if got := measure(10); got["cuda_mem"] != 0 {
		t.Errorf("memory the driver hides is reported as %v", got)
	}
}

func TestDriverComesAndGoes(t *testing.T) {
	m := newHost(t, h100)
	working := false
	m.InitFunc = func() nvml.Return {
		if working {
			return nvml.SUCCESS
		}
		return nvml.ERROR_DRIVER_NOT_LOADED
	}
	p := m.start(t, "")
	if n := len(look(t, p).GetDevices()); n != 0 {
		t.Errorf("%d devices without a driver", n)
	}
	working = true
	if n := len(look(t, p).GetDevices()); n != 1 {
		t.Errorf("%d devices with the driver", n)
	}
	working = false
	m.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNINITIALIZED }
	if n := len(look(t, p).GetDevices()); n != 0 {
		t.Errorf("%d devices after the driver was unloaded", n)
	}
	if p.vendor.nvml != nil {
		t.Error("the dead driver is still in use")
	}
}

func TestNoLibraryNoLoad(t *testing.T) {
	loaded := errors.New("loaded")
	defer func() {
		if r := recover(); r != nil {
			t.Error(r)
		}
	}()
	_, err := open(func(string) nvml.Interface { panic(loaded) }, driver.NewHost(&pb.Roots{Driver: t.TempDir()}))
	if !errors.Is(err, errNoDriver) {
		t.Errorf("got %v", err)
	}
}

func TestConfig(t *testing.T) {
	for _, bad := range []string{"{", "[]", `{"x": 1}`, `{"quantum": "2"}`, `{"quantum": "0"}`, `{"min_compute_capability": "7"}`, `{"min_compute_capability": "7.5x"}`,
		`{"enforcement": "hard"}`, `{"enforcement": "limit"}`, `{"unit_mem": 1}`, `{"unit_mem": 2147483649}`, `{"unit_mem": -2147483648}`, `{"unit_sm": -1}`} {
		if _, err := parse([]byte(bad), ""); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	m := newHost(t, h100, h100)
	p := m.start(t, `{"fractions": false}`)
	s := look(t, p)
	if len(s.GetDevices()) != 2 || len(s.GetSlots()) != 1 || len(s.GetDevices()[0].GetCapacity()) != 1 {
		t.Errorf("snapshot %v", s)
	}
}

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// gauge returns a measurement, or one that is marked as unavailable if NVML returned an error.
func gauge(name, id, unit string, value, limit float64, ret nvml.Return) *pb.Metric {
	var err error
	if ret != nvml.SUCCESS {
		err = fmt.Errorf("NVML error %d", ret)
	}
	return driver.Gauge("cuda_"+name, id, unit, value, limit, err)
}

// measured returns the GPUs of the last scan, with handles that are valid until release is called.
// It returns none if NVML is busy or was reloaded.
func (m *machine) measured(ctx context.Context) (gpus map[string]*gpu, release func()) {
	release, err := m.vendor.use(ctx)
	if err != nil {
		return nil, func() {}
	}
	if v := m.last.Load(); v != nil && v.nvml == m.vendor.nvml {
		gpus = v.gpus
	}
	return gpus, release
}

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	gpus, release := m.measured(ctx)
	defer release()
	var out []*pb.Metric
	for _, d := range s.GetDevices() {
		if g := gpus[d.GetId()]; g != nil && g.handle != nil {
			out = append(out, g.sample()...)
			if g.parent == nil {
				out = append(out, m.counters(g)...)
			}
		}
	}
	return out
}

func (g *gpu) sample() []*pb.Metric {
	mem, ret := g.handle.GetMemoryInfo()
	out := []*pb.Metric{gauge("mem", g.id, "bytes", float64(mem.Used), float64(mem.Total), ret)}
	if g.parent != nil { // other metrics exist only for whole GPUs
		return append(out, gauge("util", g.id, "percent", 0, 0, nvml.ERROR_NOT_SUPPORTED))
	}
	util, ret := g.handle.GetUtilizationRates()
	out = append(out, gauge("util", g.id, "percent", float64(util.Gpu), 100, ret))
	power, ret := g.handle.GetPowerUsage()
	limit, _ := g.handle.GetEnforcedPowerLimit()
	out = append(out, gauge("power", g.id, "watt", float64(power)/1000, float64(limit)/1000, ret))
	heat, ret := g.handle.GetTemperature(nvml.TEMPERATURE_GPU)
	slow, _ := g.handle.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	return append(out, gauge("temperature", g.id, "celsius", float64(heat), float64(slow), ret))
}

// SampleWorkloads implements driver.WorkloadSampler.
func (m *machine) SampleWorkloads(ctx context.Context, _ *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	gpus, release := m.measured(ctx)
	defer release()
	usage := map[string]*processes{}
	var out []*pb.WorkloadMetrics
	for _, w := range set.GetWorkloads() {
		out = append(out, workload(w, gpus, usage, set.GetPerProcess()))
	}
	return out
}

// processes has NVML's data about the processes on one GPU.
type processes struct {
	memory  map[int32]uint64 // bytes by host pid
	memRet  nvml.Return
	util    map[int32]float64 // percent by host pid
	utilRet nvml.Return
}

func (g *gpu) processes() *processes {
	out := &processes{memory: map[int32]uint64{}, util: map[int32]float64{}}
	list, ret := g.handle.GetComputeRunningProcesses()
	out.memRet = ret
	for _, x := range list {
		if x.UsedGpuMemory == math.MaxUint64 { // VALUE_NOT_AVAILABLE
			out.memRet = nvml.ERROR_NOT_SUPPORTED
			continue
		}
		out.memory[int32(x.Pid)] += x.UsedGpuMemory
	}
	if g.parent != nil {
		out.utilRet = nvml.ERROR_NOT_SUPPORTED
		return out
	}
	since := uint64(time.Now().Add(-5 * time.Second).UnixMicro())
	samples, ret := g.handle.GetProcessUtilization(since)
	if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INSUFFICIENT_SIZE { // no process was running
		ret = nvml.SUCCESS
	}
	out.utilRet = ret
	last := map[int32]uint64{}
	for _, x := range samples {
		if x.SmUtil > 100 {
			out.utilRet = nvml.ERROR_UNKNOWN
		} else if pid := int32(x.Pid); x.TimeStamp >= last[pid] {
			last[pid], out.util[pid] = x.TimeStamp, float64(x.SmUtil)
		}
	}
	return out
}

// workload sums the usage of its GPUs over a container's processes.
func workload(w *pb.Workload, gpus map[string]*gpu, usage map[string]*processes, each bool) *pb.WorkloadMetrics {
	out := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
	byPid := map[int32][]*pb.Metric{}
	for _, a := range w.GetAllocations() {
		g := gpus[a.GetDeviceId()]
		if g == nil || g.handle == nil {
			continue
		}
		u := usage[g.id]
		if u == nil {
			u = g.processes()
			usage[g.id] = u
		}
		var mem, util float64
		for _, pid := range w.GetHostPids() {
			m, on := u.memory[pid]
			mem += float64(m)
			util += u.util[pid]
			if each && on {
				byPid[pid] = append(byPid[pid], gauge("mem", g.id, "bytes", float64(m), 0, u.memRet))
			}
		}
		out.Metrics = append(out.Metrics,
			gauge("mem", g.id, "bytes", mem, float64(g.memory), u.memRet),
			gauge("util", g.id, "percent", min(util, 100), 100, u.utilRet)) // the samples are from different moments
	}
	for _, pid := range slices.Sorted(maps.Keys(byPid)) {
		out.Processes = append(out.Processes, &pb.ProcessMetrics{HostPid: pid, Metrics: byPid[pid]})
	}
	return out
}

// counters returns a whole GPU's memory errors since the driver was loaded, its clock rates, and
// its NVLink traffic.
func (m *machine) counters(g *gpu) []*pb.Metric {
	out := []*pb.Metric{
		g.errors("ecc_uncorrected", nvml.MEMORY_ERROR_TYPE_UNCORRECTED),
		g.errors("ecc_corrected", nvml.MEMORY_ERROR_TYPE_CORRECTED),
		g.clock("clock", nvml.CLOCK_SM), g.clock("memory_clock", nvml.CLOCK_MEM),
	}
	return append(out, m.traffic(g)...)
}

func (g *gpu) errors(name string, kind nvml.MemoryErrorType) *pb.Metric {
	n, ret := g.handle.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
	out := gauge(name, g.id, "count", float64(n), 0, ret)
	out.Kind = pb.Metric_COUNTER
	return out
}

func (g *gpu) clock(name string, kind nvml.ClockType) *pb.Metric {
	n, ret := g.handle.GetClockInfo(kind)
	return gauge(name, g.id, "mhz", float64(n), 0, ret)
}

// linkBytes has NVML's counters of all NVLinks of a GPU and the time of the read.
type linkBytes struct {
	sent, received uint64
	at             time.Time
}

// allLinks is the scope of a field that covers all NVLinks.
const allLinks = math.MaxUint32

// traffic returns the rate of a GPU's NVLink traffic since the previous read, or nothing for a GPU
// without NVLink.
func (m *machine) traffic(g *gpu) []*pb.Metric {
	fields := []nvml.FieldValue{
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: allLinks},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: allLinks},
	}
	ret := g.handle.GetFieldValues(fields)
	for _, f := range fields {
		if ret == nvml.SUCCESS {
			ret = nvml.Return(f.NvmlReturn)
		}
	}
	if ret != nvml.SUCCESS {
		return nil
	}
	// NVML counts KiB.
	now := linkBytes{binary.NativeEndian.Uint64(fields[0].Value[:]) << 10, binary.NativeEndian.Uint64(fields[1].Value[:]) << 10, time.Now()}
	m.mu.Lock()
	if m.wires == nil {
		m.wires = map[string]linkBytes{}
	}
	was := m.wires[g.id]
	m.wires[g.id] = now
	m.mu.Unlock()
	took := now.at.Sub(was.at).Seconds()
	if was.at.IsZero() || took <= 0 || now.sent < was.sent || now.received < was.received { // a rate requires two reads
		ret = nvml.ERROR_NOT_READY
	}
	rate := func(name string, n uint64) *pb.Metric {
		out := gauge(name, g.id, "bytes", float64(n)/took, 0, ret)
		out.Kind = pb.Metric_RATE
		return out
	}
	return []*pb.Metric{rate("nvlink_tx", now.sent-was.sent), rate("nvlink_rx", now.received-was.received)}
}

// fabric checks the manager of a machine's NVSwitches, which CUDA requires on all of its GPUs. It
// returns nil for a machine without switches.
func (m *machine) fabric() *pb.Check {
	switches := 0
	for _, name := range driver.Names(m.Dev()) {
		if n, ok := strings.CutPrefix(name, "nvidia-nvswitch"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
			switches++
		}
	}
	if switches == 0 {
		return nil
	}
	const name = "nv-fabricmanage" // the kernel truncates nv-fabricmanager to 15 characters
	running := false
	for _, pid := range driver.Names(m.Proc()) {
		if strings.Trim(pid, "0123456789") == "" && driver.Text(m.Proc(pid, "comm")) == name {
			running = true
			break
		}
	}
	return driver.Checked("fabric-manager", running, "nv-fabricmanager runs",
		"this machine has NVSwitches and nv-fabricmanager does not run: CUDA cannot start on its GPUs")
}

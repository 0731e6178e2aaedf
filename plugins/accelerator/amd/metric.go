package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

var errUnknown = errors.New("the driver does not report it")

// Sample implements driver.Sampler.
func (m *machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	var all []*pb.Metric
	for _, d := range s.GetDevices() {
		dir := m.dir(d)
		if dir == "" {
			continue
		}
		all = append(all, m.memory(d, dir), m.util(d, dir))
		if d.GetParentId() != "" {
			continue // power and temperature are measured per card
		}
		at := sensors(dir)
		watts, err := driver.Float(at, "power1_average")
		if err != nil {
			watts, err = driver.Float(at, "power1_input")
		}
		limit, _ := driver.Float(at, "power1_cap")
		all = append(all, driver.Gauge("rocm_power", d.GetId(), "watt", watts/1e6, limit/1e6, err))
		var cold error
		degrees, _, ok := heat(dir)
		if !ok {
			cold = errUnknown
		}
		all = append(all, driver.Gauge("rocm_temperature", d.GetId(), "celsius", degrees, 0, cold))
	}
	return all
}

// dir returns the device's PCI function in sysfs, or "" if it is gone.
func (m *machine) dir(d *pb.Device) string {
	p, ok := m.host.PCIAt(d.GetPciAddress())
	if !ok {
		return ""
	}
	return p.Dir
}

// memory returns the used memory of a device, for all users.
func (m *machine) memory(d *pb.Device, dir string) *pb.Metric {
	var used uint64
	var err error
	if d.GetParentId() == "" {
		used, err = driver.Uint(dir, "mem_info_vram_used")
	} else {
		used, err = driver.Uint(m.host.Sys("class/kfd/kfd/topology/nodes", d.GetAttributes()["kfd_node"], "mem_banks/0/used_memory"))
	}
	return driver.Gauge("rocm_mem", d.GetId(), "bytes", float64(used), float64(d.GetMemoryBytes()), err)
}

// util returns the utilization of a device. The driver does not report it for a partition, but it
// reports how many of its compute units each process occupies.
func (m *machine) util(d *pb.Device, dir string) *pb.Metric {
	if d.GetParentId() == "" {
		busy, err := driver.Float(dir, "gpu_busy_percent")
		return percent(d, busy, err)
	}
	var pids []int32
	for _, name := range driver.Names(m.host.Sys("class/kfd/kfd/proc")) {
		if pid, err := strconv.ParseInt(name, 10, 32); err == nil {
			pids = append(pids, int32(pid))
		}
	}
	return m.occupancy(d, pids)
}

// occupancy estimates the utilization of a device from the compute units that processes occupy.
func (m *machine) occupancy(d *pb.Device, pids []int32) *pb.Metric {
	if d.GetAttributes()["gpu_id"] == "" || d.GetProcessingUnits() == 0 || !driver.Exists(m.host.Sys("class/kfd/kfd/proc")) {
		return percent(d, 0, errUnknown)
	}
	var units uint64
	for _, pid := range pids {
		n, _ := driver.Uint(m.host.Sys("class/kfd/kfd/proc", strconv.Itoa(int(pid)), "stats_"+d.GetAttributes()["gpu_id"], "cu_occupancy"))
		units += min(n, uint64(d.GetProcessingUnits()))
	}
	// Processes share compute units, so the sum can exceed their number.
	return driver.Derived(percent(d, min(100, float64(units)/float64(d.GetProcessingUnits())*100), nil))
}

func percent(d *pb.Device, value float64, err error) *pb.Metric {
	g := driver.Gauge("rocm_util", d.GetId(), "percent", value, 100, err)
	g.Kind = pb.Metric_UTILIZATION
	return g
}

// SampleWorkloads implements driver.WorkloadSampler. A container's memory is that of its processes,
// according to the compute driver or the graphics driver, whichever reports more. Both count the
// same buffers, but not always all of them.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	devices := driver.ByID(s)
	var all []*pb.WorkloadMetrics
	for _, w := range set.GetWorkloads() {
		out := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
		drm := map[int32]map[string]uint64{} // by process and render node
		clients := map[string]bool{}
		for _, pid := range w.GetHostPids() {
			if ctx.Err() == nil {
				drm[pid] = m.drm(pid, clients)
			}
		}
		processes := map[int32]*pb.ProcessMetrics{}
		for _, a := range w.GetAllocations() {
			if d := devices[a.GetDeviceId()]; d != nil {
				out.Metrics = append(out.Metrics, m.workload(d, w.GetHostPids(), drm, processes)...)
			}
		}
		for _, pid := range w.GetHostPids() {
			if p := processes[pid]; p != nil && set.GetPerProcess() {
				out.Processes = append(out.Processes, p)
			}
		}
		all = append(all, out)
	}
	return all
}

// workload measures the usage of one device by processes, and stores it per process.
func (m *machine) workload(d *pb.Device, pids []int32, drm map[int32]map[string]uint64, processes map[int32]*pb.ProcessMetrics) []*pb.Metric {
	dir := m.dir(d)
	busy := m.occupancy(d, pids)
	if d.GetParentId() == "" { // partitions are not measured this way
		busy = driver.Attributed(m.util(d, dir))
	}
	if len(pids) == 0 {
		return []*pb.Metric{driver.Attributed(m.memory(d, dir)), busy}
	}
	var sum uint64
	for _, pid := range pids {
		kfd, _ := driver.Uint(m.host.Sys("class/kfd/kfd/proc", strconv.Itoa(int(pid)), "vram_"+d.GetAttributes()["gpu_id"]))
		used := max(kfd, drm[pid][filepath.Base(d.GetAttributes()["node"])])
		if used == 0 {
			continue
		}
		sum += used
		p := processes[pid]
		if p == nil {
			p = &pb.ProcessMetrics{HostPid: pid}
			processes[pid] = p
		}
		p.Metrics = append(p.Metrics, driver.Gauge("rocm_mem", d.GetId(), "bytes", float64(used), float64(d.GetMemoryBytes()), nil))
	}
	return []*pb.Metric{driver.Gauge("rocm_mem", d.GetId(), "bytes", float64(sum), float64(d.GetMemoryBytes()), nil), busy}
}

// drm returns a process's memory by render node, from the kernel's information about its open
// files. A client that processes share is counted once.
func (m *machine) drm(pid int32, clients map[string]bool) map[string]uint64 {
	sums := map[string]uint64{}
	dir := m.host.Proc(strconv.Itoa(int(pid)))
	for _, fd := range driver.Names(dir, "fd") {
		to, err := os.Readlink(filepath.Join(dir, "fd", fd))
		node := filepath.Base(to)
		if err != nil || !strings.HasPrefix(node, "renderD") {
			continue
		}
		info, err := driver.Read(dir, "fdinfo", fd)
		if err != nil {
			continue
		}
		client := node + " " + field(info, "drm-client-id")
		var kib uint64
		if _, err := fmt.Sscanf(field(info, "drm-memory-vram"), "%d KiB", &kib); err != nil || kib > 1<<40 || clients[client] {
			continue
		}
		clients[client] = true
		sums[node] += kib << 10
	}
	return sums
}

func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

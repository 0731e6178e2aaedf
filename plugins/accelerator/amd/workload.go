package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

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

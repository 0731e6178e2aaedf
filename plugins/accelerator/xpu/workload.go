package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// client is a connection of a process to a GPU, from the kernel's information about an open file.
// Processes that share an open file share the client.
type client struct {
	pci, id string
	memory  float64
	engines map[string]engine
}

// engine is the usage of the engines of a class by a client: busy and total cycles with xe,
// nanoseconds with i915.
type engine struct{ busy, total, capacity float64 }

// work is the last read of a client's engines.
type work struct {
	engines map[string]engine
	at      time.Time
}

// engineNames are the classes of compute engines, in the terms of xe and i915.
var engineNames = []string{"ccs", "rcs", "compute", "render"}

// forgetAfter is how long a client is remembered after it was last seen.
const forgetAfter = time.Minute

// SampleWorkloads implements driver.WorkloadSampler. A container's memory and GPU time are those of
// its processes' clients.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	devices := driver.ByID(s)
	var all []*pb.WorkloadMetrics
	for _, w := range set.GetWorkloads() {
		out := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
		byPID, seen := map[int32][]client{}, map[string]bool{}
		for _, pid := range w.GetHostPids() {
			if ctx.Err() == nil {
				byPID[pid] = m.of(pid, seen)
			}
		}
		processes := map[int32]*pb.ProcessMetrics{}
		for _, a := range w.GetAllocations() {
			if d := devices[a.GetDeviceId()]; d != nil {
				out.Metrics = append(out.Metrics, m.workload(d, w.GetHostPids(), byPID, processes)...)
			}
		}
		for _, pid := range w.GetHostPids() {
			if p := processes[pid]; p != nil && set.GetPerProcess() {
				out.Processes = append(out.Processes, p)
			}
		}
		all = append(all, out)
	}
	m.forget()
	return all
}

// workload measures the usage of one device by processes, and stores the memory of each.
func (m *machine) workload(d *pb.Device, pids []int32, byPID map[int32][]client, processes map[int32]*pb.ProcessMetrics) []*pb.Metric {
	memory, busy := 0.0, 0.0
	var noUtil error
	for _, pid := range pids {
		own := 0.0
		for _, c := range byPID[pid] {
			if c.pci != d.GetPciAddress() {
				continue
			}
			own += c.memory
			percent, err := m.busy(c)
			if busy += percent; err != nil {
				noUtil = err
			}
		}
		if own == 0 {
			continue
		}
		memory += own
		if processes[pid] == nil {
			processes[pid] = &pb.ProcessMetrics{HostPid: pid}
		}
		processes[pid].Metrics = append(processes[pid].Metrics, driver.Gauge(key+"_mem", d.GetId(), "bytes", own, float64(d.GetMemoryBytes()), nil))
	}
	util := driver.Gauge(key+"_util", d.GetId(), "percent", min(busy, 100), 100, noUtil) // clients are not read simultaneously, so the sum can exceed 100
	util.Kind = pb.Metric_UTILIZATION
	return []*pb.Metric{driver.Gauge(key+"_mem", d.GetId(), "bytes", memory, float64(d.GetMemoryBytes()), nil), util}
}

// of returns the clients of a process that no earlier process has.
func (m *machine) of(pid int32, seen map[string]bool) []client {
	var out []client
	dir := m.Proc(strconv.Itoa(int(pid)))
	for _, fd := range driver.Names(dir, "fd") {
		to, err := os.Readlink(filepath.Join(dir, "fd", fd))
		if name := filepath.Base(to); err != nil || !renderForm.MatchString(name) && !cardForm.MatchString(name) {
			continue
		}
		info, err := driver.Read(dir, "fdinfo", fd)
		if err != nil {
			continue
		}
		if c := parse(info); c.id != "" && !seen[c.pci+" "+c.id] {
			seen[c.pci+" "+c.id] = true
			out = append(out, c)
		}
	}
	return out
}

// parse parses the kernel's drm-usage-stats.
func parse(info string) client {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	c := client{pci: fields["drm-pdev"], id: fields["drm-client-id"], engines: map[string]engine{}}
	if c.memory = local(fields, "drm-resident-"); c.memory == 0 {
		c.memory = local(fields, "drm-total-")
	}
	number := func(name string) float64 {
		n, _ := strconv.ParseFloat(strings.TrimSuffix(fields[name], " ns"), 64)
		return n
	}
	for _, name := range engineNames {
		e := engine{number("drm-cycles-" + name), number("drm-total-cycles-" + name), max(1, number("drm-engine-capacity-"+name))}
		if fields["drm-engine-"+name] != "" {
			e.busy = number("drm-engine-" + name)
		}
		if e.busy > 0 || e.total > 0 {
			c.engines[name] = e
		}
	}
	return c
}

// local sums the regions of the GPU's own memory: vram0 of xe, local0 of i915.
func local(fields map[string]string, prefix string) float64 {
	sum := 0.0
	for name, value := range fields {
		region, ok := strings.CutPrefix(name, prefix)
		if !ok || !strings.HasPrefix(region, "vram") && !strings.HasPrefix(region, "local") {
			continue
		}
		if n, err := driver.Quantity(driver.Scalar(value)); err == nil {
			sum += n
		}
	}
	return sum
}

// busy returns the share of time since the last read in which a client used the busiest of its
// engine classes, in percent.
func (m *machine) busy(c client) (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, now := c.pci+" "+c.id, m.now()
	was, known := m.clients[name]
	m.clients[name] = work{c.engines, now}
	if !known {
		return 0, errOnce
	}
	most := 0.0
	for class, e := range c.engines {
		before := was.engines[class]
		passed := e.total - before.total // cycles
		if e.total == 0 {
			passed = float64(now.Sub(was.at).Nanoseconds())
		}
		if passed > 0 && e.busy >= before.busy {
			most = max(most, 100*(e.busy-before.busy)/(passed*e.capacity))
		}
	}
	return most, nil
}

// forget removes clients that have ended.
func (m *machine) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, w := range m.clients {
		if m.now().Sub(w.at) > forgetAfter {
			delete(m.clients, name)
		}
	}
}

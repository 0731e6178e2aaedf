// Package stats measures kernels and the node, from cgroups, the host's end of a kernel's veth
// pair, accelerator plugins and /proc.
package stats

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/cgroup"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/agent/kernel"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/resource"
)

// Collector takes samples. Utilization is the average since the previous sample.
type Collector struct {
	kernels *kernel.Manager
	devices *device.Manager
	dir     string // on the file system whose usage is the node's disk usage
	logger  *slog.Logger

	mu     sync.Mutex
	last   map[string]cpuSample     // by allocation id, "" = node
	groups map[string]*cgroup.Group // by allocation id
}

type cpuSample struct {
	at   time.Time
	used time.Duration
}

// New returns a Collector. dir contains the files of the node's kernels.
func New(kernels *kernel.Manager, devices *device.Manager, dir string, logger *slog.Logger) *Collector {
	return &Collector{kernels: kernels, devices: devices, dir: dir, logger: logger, last: map[string]cpuSample{}, groups: map[string]*cgroup.Group{}}
}

// parallel limits how many containers are measured concurrently: where no cgroup can be read, each
// measurement is a round trip to a shim.
const parallel = 8

// Collect takes one sample of the node and of all kernels.
func (c *Collector) Collect(ctx context.Context) *agentpb.StatsReport {
	report := &agentpb.StatsReport{UnixMs: time.Now().UnixMilli(), Node: c.node()}
	var (
		wg        sync.WaitGroup
		mu        sync.Mutex
		slots     = make(chan struct{}, parallel)
		workloads []device.Workload
		alive     = map[string]bool{"": true}
	)
	for _, k := range c.kernels.List() {
		container, err := k.Running()
		if err != nil {
			continue
		}
		alive[k.AllocationID()] = true
		if device.Accelerated(k.Allocations()) {
			workloads = append(workloads, device.Workload{
				ID: k.AllocationID(), ContainerID: container.ID(), CgroupPath: k.CgroupPath(), Allocations: k.Allocations(),
				PIDs: pids(k.CgroupPath()),
			})
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			sample, err := c.kernel(ctx, k)
			if err != nil {
				c.logger.Debug("kernel not measured", "kernel", k.ID, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			report.Kernels = append(report.Kernels, sample)
		})
	}
	wg.Wait()
	c.devices.Watch(workloads)
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.last {
		if !alive[id] {
			delete(c.last, id)
			delete(c.groups, id)
		}
	}
	return report
}

func (c *Collector) kernel(ctx context.Context, k *kernel.Kernel) (*agentpb.KernelStats, error) {
	container, err := k.Running()
	if err != nil {
		return nil, err
	}
	s, err := c.usage(k)
	if errdefs.IsNotFound(err) { // another runtime class may account elsewhere
		s, err = container.Stats(ctx)
	}
	if err != nil {
		return nil, err
	}
	limit := limits(k.Allocations())
	out := &agentpb.KernelStats{KernelId: k.ID, Metrics: []*agentpb.Metric{
		{Name: "cpu_used_ms", Value: float64(s.CPU.Milliseconds()), Unit: "ms"},
		{Name: "mem_used", Value: float64(s.Memory), Capacity: float64(limit[resource.Mem]), Unit: "bytes"},
		{Name: "io_read", Value: float64(s.IORead), Unit: "bytes"},
		{Name: "io_write", Value: float64(s.IOWrite), Unit: "bytes"},
		{Name: "pids", Value: float64(s.Pids), Unit: "count"},
	}}
	if util, ok := c.utilisation(k.AllocationID(), s.CPU); ok {
		out.Metrics = append(out.Metrics, &agentpb.Metric{Name: "cpu_util", Value: util, Capacity: float64(limit[resource.CPU]) / 10, Unit: "percent"})
	}
	if received, sent, err := k.Traffic(); err == nil {
		out.Metrics = append(out.Metrics,
			&agentpb.Metric{Name: "net_rx", Value: float64(received), Unit: "bytes"},
			&agentpb.Metric{Name: "net_tx", Value: float64(sent), Unit: "bytes"})
	}
	if u, err := k.Disk(); err == nil && u.MaxBytes > 0 {
		out.Metrics = append(out.Metrics,
			&agentpb.Metric{Name: "disk_used", Value: float64(u.Bytes), Capacity: float64(u.MaxBytes), Unit: "bytes"},
			&agentpb.Metric{Name: "disk_files", Value: float64(u.Inodes), Capacity: float64(u.MaxInodes), Unit: "count"})
	}
	out.Metrics = append(out.Metrics, c.devices.WorkloadMetrics(k.AllocationID())...)
	return out, nil
}

// usage reads the kernel's cgroup. It returns NotFound if there is none.
func (c *Collector) usage(k *kernel.Kernel) (runtime.Stats, error) {
	c.mu.Lock()
	g := c.groups[k.AllocationID()]
	c.mu.Unlock()
	if g == nil {
		var err error
		if g, err = cgroup.Find(cgroup.Root, k.CgroupPath()); err != nil {
			return runtime.Stats{}, err
		}
		c.mu.Lock()
		c.groups[k.AllocationID()] = g
		c.mu.Unlock()
	}
	return g.Stats()
}

// utilisation returns the utilization in percent of one core. It reports false if there is no
// earlier sample.
func (c *Collector) utilisation(id string, used time.Duration) (float64, bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	before, ok := c.last[id]
	c.last[id] = cpuSample{now, used}
	span := now.Sub(before.at)
	if !ok || span <= 0 || used < before.used {
		return 0, false
	}
	return 100 * float64(used-before.used) / float64(span), true
}

func limits(list []*agentpb.Allocation) resource.Slots {
	sum := resource.Slots{}
	for _, a := range list {
		if amount, err := resource.Parse(a.Slot, a.Amount); err == nil && (a.Slot == resource.CPU || a.Slot == resource.Mem) {
			sum[a.Slot] += amount
		}
	}
	return sum
}

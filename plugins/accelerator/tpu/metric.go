package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// stale is the age after which the metrics of a container's library are no longer used for the
// node. Workloads are measured every few seconds.
const stale = 30 * time.Second

// seen has the last metrics of a chip.
type seen struct {
	used, total, busy float64
	at                time.Time
}

// Sample implements driver.Sampler. Only a program that uses a chip can report its metrics, so
// those of an unused chip are unavailable.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	if m.Address != "" {
		m.everything(ctx, s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*pb.Metric
	for _, d := range s.GetDevices() {
		sample, ok := m.seen[d.GetId()]
		all = append(all, measure(d, sample, ok && time.Since(sample.at) < stale)...)
	}
	return all
}

// SampleWorkloads implements driver.WorkloadSampler.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	if m.Address != "" {
		m.everything(ctx, s)
	}
	var all []*pb.WorkloadMetrics
	for _, w := range set.GetWorkloads() {
		out := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
		devices := held(s, w)
		if m.Address == "" && len(w.GetHostPids()) > 0 && len(devices) > 0 && ctx.Err() == nil {
			f, err := m.container(ctx, w.GetHostPids()[0], len(devices), int(devices[0].GetProcessingUnits()))
			m.note(devices, f, err)
		}
		m.mu.Lock()
		for _, d := range devices {
			sample, ok := m.seen[d.GetId()]
			out.Metrics = append(out.Metrics, measure(d, sample, ok)...)
		}
		m.mu.Unlock()
		all = append(all, out)
	}
	return all
}

// held returns a workload's chips in the order in which its programs number them.
func held(s *pb.DeviceSnapshot, w *pb.Workload) []*pb.Device {
	mine := map[string]bool{}
	for _, a := range w.GetAllocations() {
		mine[a.GetDeviceId()] = true
	}
	var out []*pb.Device
	for _, d := range s.GetDevices() {
		if mine[d.GetId()] {
			out = append(out, d)
		}
	}
	return inOrder(out)
}

// everything queries the one address of all chips.
func (m *machine) everything(ctx context.Context, s *pb.DeviceSnapshot) {
	if len(s.GetDevices()) == 0 {
		return
	}
	f, err := ask(ctx, m.Address, direct, int(s.GetDevices()[0].GetProcessingUnits()))
	m.note(inOrder(s.GetDevices()), f, err)
}

// inOrder sorts chips by libtpu's numbers.
func inOrder(devices []*pb.Device) []*pb.Device {
	return slices.SortedStableFunc(slices.Values(devices), func(a, b *pb.Device) int { return cmp.Compare(driver.Number(a, "index"), driver.Number(b, "index")) })
}

// note stores the metrics of chips, and removes the stored ones of chips without a response.
func (m *machine) note(devices []*pb.Device, f figures, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, d := range devices {
		used, ok := f.used[i]
		if err != nil || !ok {
			delete(m.seen, d.GetId())
			continue
		}
		m.seen[d.GetId()] = seen{used, f.total[i], f.busy[i], time.Now()}
	}
}

func measure(d *pb.Device, sample seen, known bool) []*pb.Metric {
	var err error
	if !known {
		err = errNotReported
	}
	total := sample.total
	if total <= 0 {
		total = float64(d.GetMemoryBytes())
	}
	util := driver.Gauge("tpu_util", d.GetId(), "percent", sample.busy, 100, err)
	util.Kind = pb.Metric_UTILIZATION
	return []*pb.Metric{driver.Gauge("tpu_mem", d.GetId(), "bytes", sample.used, total, err), util}
}

package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var metricChecks = []Check{
	{"node-metrics", "samples keep coming, each number within its bounds", nodeMetrics},
	{"workload-metrics", "workloads together use at most the capacity of their devices, and more than nothing", workloadMetrics},
}

func nodeMetrics(ctx context.Context, b *bench) error {
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w, err := c.WatchNodeMetrics(ctx, &pb.WatchNodeMetricsRequest{IntervalMs: 100})
	if err != nil {
		return err
	}
	counters := map[string]float64{}
	for range 3 {
		sample, err := w.Recv()
		if err != nil {
			return err
		}
		if sample.GetUnixMs() == 0 {
			return errors.New("a sample has no time")
		}
		if len(usable(s)) > 0 && len(sample.GetMetrics()) == 0 {
			return errors.New("a sample has no metrics")
		}
		if err := metrics(c, s, sample.GetMetrics(), counters); err != nil {
			return err
		}
	}
	return nil
}

// metrics checks metrics, and counters against earlier values.
func metrics(c *accelerator.Client, s *pb.DeviceSnapshot, list []*pb.Metric, counters map[string]float64) error {
	seen := map[string]bool{}
	for _, m := range list {
		if err := accelerator.ValidateMetric(c.Description.GetKey(), m); err != nil {
			return err
		}
		name := m.GetName() + " " + m.GetDeviceId()
		if m.GetDeviceId() != "" && device(s, m.GetDeviceId()) == nil || seen[name] {
			return fmt.Errorf("metric %s is of an unknown device or is listed twice", name)
		}
		seen[name] = true
		if m.GetKind() == pb.Metric_COUNTER {
			if m.GetValue() < counters[name] {
				return fmt.Errorf("counter %s fell from %v to %v", name, counters[name], m.GetValue())
			}
			counters[name] = m.GetValue()
		}
	}
	return nil
}

func workloadMetrics(ctx context.Context, b *bench) error {
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w, err := c.WatchWorkloadMetrics(ctx)
	if err != nil {
		return err
	}
	set := workloads(s)
	if err := w.Send(set); err != nil && !errors.Is(err, io.EOF) { // if the stream has ended, Recv returns the reason
		return err
	}
	if !has(c.Description, pb.Capability_CAPABILITY_WORKLOAD_METRICS) {
		_, err := w.Recv()
		return want("WatchWorkloadMetrics without the capability", err, codes.Unimplemented)
	}
	for range 2 {
		most, err := nodeFigures(ctx, c)
		if err != nil {
			return err
		}
		sample, err := w.Recv()
		if err != nil {
			return err
		}
		later, err := nodeFigures(ctx, c)
		if err != nil {
			return err
		}
		for k, v := range later {
			most[k] = max(most[k], v)
		}
		if err := workloadSample(c, s, set, sample, most); err != nil {
			return err
		}
	}
	return nil
}

type figure struct{ name, device string }

// nodeFigures takes one sample of the devices' metrics.
func nodeFigures(ctx context.Context, c *accelerator.Client) (map[figure]float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.WatchNodeMetrics(ctx, &pb.WatchNodeMetricsRequest{IntervalMs: 100})
	if err != nil {
		return nil, err
	}
	sample, err := w.Recv()
	if err != nil {
		return nil, err
	}
	out := map[figure]float64{}
	for _, m := range sample.GetMetrics() {
		if m.GetQuality() != pb.Metric_UNAVAILABLE {
			out[figure{m.GetName(), m.GetDeviceId()}] = m.GetValue()
		}
	}
	return out, nil
}

// workloads returns two workloads that share the first divisible device, or one workload with a
// whole device.
func workloads(s *pb.DeviceSnapshot) *pb.WorkloadSet {
	set := &pb.WorkloadSet{IntervalMs: 100, PerProcess: true}
	add := func(id string, a *pb.Allocation) {
		set.Workloads = append(set.Workloads, &pb.Workload{AllocationId: id, Allocations: []*pb.Allocation{a}})
	}
	for _, slot := range s.GetSlots() {
		for _, d := range usable(s) {
			if slot.GetKind() == pb.SlotType_SHARES && d.GetCapacity()[slot.GetName()] == "1" {
				add("a", &pb.Allocation{Slot: slot.GetName(), DeviceId: d.GetId(), Amount: "0.5"})
				add("b", &pb.Allocation{Slot: slot.GetName(), DeviceId: d.GetId(), Amount: "0.5"})
				return set
			}
		}
	}
	if d := usable(s); len(d) > 0 {
		add("a", all(s, d[0]))
	}
	return set
}

func workloadSample(c *accelerator.Client, s *pb.DeviceSnapshot, set *pb.WorkloadSet, sample *pb.WorkloadSample, most map[figure]float64) error {
	if len(sample.GetWorkloads()) != len(set.GetWorkloads()) || sample.GetUnixMs() == 0 {
		return fmt.Errorf("sample of %d workloads at %d, asked for %d", len(sample.GetWorkloads()), sample.GetUnixMs(), len(set.GetWorkloads()))
	}
	used := map[figure]float64{}
	for _, w := range sample.GetWorkloads() {
		if err := metrics(c, s, w.GetMetrics(), map[string]float64{}); err != nil {
			return fmt.Errorf("workload %s: %w", w.GetAllocationId(), err)
		}
		for _, m := range w.GetMetrics() {
			if m.GetQuality() != pb.Metric_UNAVAILABLE && m.GetKind() != pb.Metric_COUNTER {
				used[figure{m.GetName(), m.GetDeviceId()}] += m.GetValue()
			}
		}
	}
	for f, n := range used {
		have := device(s, f.device).GetMemoryBytes()
		if f.name == c.Description.GetKey()+"_mem" && have > 0 && n > float64(have)*1.01 {
			return fmt.Errorf("workloads use %.0f of the %d bytes of %s", n, have, f.device)
		}
		// The three samples are taken at different moments, so a difference of 10 % plus 10 is
		// accepted.
		if whole, ok := most[f]; ok && f.name != c.Description.GetKey()+"_temperature" && n > whole*1.1+10 {
			return fmt.Errorf("workloads have %v of %s on %s, the device itself %v", n, f.name, f.device, whole)
		}
	}
	return nil
}

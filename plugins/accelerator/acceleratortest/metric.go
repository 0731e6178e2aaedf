package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var metricChecks = []Check{
	{"node-metrics", "samples keep coming, each number within its bounds", nodeMetrics},
	{"workload-metrics", "workloads together use no more than their devices have", workloadMetrics},
}

func nodeMetrics(ctx context.Context, b *bench) error {
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
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

// metrics checks numbers, and counters against those seen before.
func metrics(c *accelerator.Client, s *pb.DeviceSnapshot, list []*pb.Metric, counters map[string]float64) error {
	seen := map[string]bool{}
	for _, m := range list {
		if err := accelerator.ValidateMetric(c.Description.GetKey(), m); err != nil {
			return err
		}
		name := m.GetName() + " " + m.GetDeviceId()
		if m.GetDeviceId() != "" && device(s, m.GetDeviceId()) == nil || seen[name] {
			return fmt.Errorf("metric %s is of an unknown device or is there twice", name)
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
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	w, err := c.WatchWorkloadMetrics(ctx)
	if err != nil {
		return err
	}
	set := workloads(s)
	if err := w.Send(set); err != nil {
		return err
	}
	if !has(c.Description, pb.Capability_CAPABILITY_WORKLOAD_METRICS) {
		_, err := w.Recv()
		return want("WatchWorkloadMetrics without the capability", err, codes.Unimplemented)
	}
	for range 2 {
		sample, err := w.Recv()
		if err != nil {
			return err
		}
		if err := workloadSample(c, s, set, sample); err != nil {
			return err
		}
	}
	return nil
}

// workloads are two that split the first device that can be split, or one with
// a whole device.
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

func workloadSample(c *accelerator.Client, s *pb.DeviceSnapshot, set *pb.WorkloadSet, sample *pb.WorkloadSample) error {
	if len(sample.GetWorkloads()) != len(set.GetWorkloads()) || sample.GetUnixMs() == 0 {
		return fmt.Errorf("sample of %d workloads at %d, asked for %d", len(sample.GetWorkloads()), sample.GetUnixMs(), len(set.GetWorkloads()))
	}
	used := map[string]float64{}
	for _, w := range sample.GetWorkloads() {
		if err := metrics(c, s, w.GetMetrics(), map[string]float64{}); err != nil {
			return fmt.Errorf("workload %s: %w", w.GetAllocationId(), err)
		}
		for _, m := range w.GetMetrics() {
			if m.GetName() == c.Description.GetKey()+"_mem" && m.GetQuality() != pb.Metric_UNAVAILABLE {
				used[m.GetDeviceId()] += m.GetValue()
			}
		}
	}
	for id, n := range used {
		if most := device(s, id).GetMemoryBytes(); most > 0 && n > float64(most)*1.01 {
			return fmt.Errorf("workloads use %.0f of the %d bytes of %s", n, most, id)
		}
	}
	return nil
}

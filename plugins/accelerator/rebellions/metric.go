package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	r, err := m.ask(ctx)
	return driver.Each(s, func(d *pb.Device) []*pb.Metric { return measure(r, err, d) })
}

// npus returns the NPUs of a device.
func (r *report) npus(d *pb.Device) []*npu {
	var out []*npu
	for _, bus := range strings.Split(d.GetAttributes()["npus"], ",") {
		if n := r.at(bus); n != nil {
			out = append(out, n)
		}
	}
	return out
}

// measure returns a card's metrics: the sum of its NPUs' memory, the mean of their utilization, and
// the highest temperature. Each NPU reports the power of the whole card.
func measure(r *report, err error, d *pb.Device) []*pb.Metric {
	var used, util, hot, power float64
	var noMem, noUtil, noHeat, noPower error = err, err, err, err
	if err == nil {
		npus := r.npus(d)
		if len(npus) == 0 {
			return nil
		}
		take := func(into *float64, failed *error, text driver.Scalar, add func(a, b float64) float64) {
			v, err := driver.Quantity(text)
			if err != nil {
				*failed = err
				return
			}
			*into = add(*into, v)
		}
		plus := func(a, b float64) float64 { return a + b }
		most := func(a, b float64) float64 { return max(a, b) }
		for _, n := range npus {
			take(&used, &noMem, n.Memory.Used, plus)
			take(&util, &noUtil, n.Util, plus)
			take(&hot, &noHeat, n.Temperature, most)
			take(&power, &noPower, n.Power, most)
		}
		util /= float64(len(npus))
	}
	id := d.GetId()
	return []*pb.Metric{
		driver.Gauge(key+"_mem", id, "bytes", used, float64(d.GetMemoryBytes()), noMem),
		driver.Gauge(key+"_util", id, "percent", util, 100, noUtil),
		driver.Gauge(key+"_power", id, "watt", power, 0, noPower),
		driver.Gauge(key+"_temperature", id, "celsius", hot, 0, noHeat),
	}
}

// SampleWorkloads implements driver.WorkloadSampler. The memory is that of the workload's processes
// according to rbln-smi; other metrics are those of its cards, which are exclusive.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	r, err := m.ask(ctx)
	devices := driver.ByID(s)
	var out []*pb.WorkloadMetrics
	for _, w := range set.GetWorkloads() {
		one := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
		processes := map[int32]*pb.ProcessMetrics{}
		for _, a := range w.GetAllocations() {
			d := devices[a.GetDeviceId()]
			if d == nil {
				continue
			}
			for _, metric := range measure(r, err, d) {
				if metric.GetName() != key+"_mem" {
					one.Metrics = append(one.Metrics, driver.Attributed(metric))
				}
			}
			total := 0.0
			if err == nil {
				for pid, used := range r.usedBy(d, w.GetHostPids()) {
					total += used
					if processes[pid] == nil {
						processes[pid] = &pb.ProcessMetrics{HostPid: pid}
					}
					processes[pid].Metrics = append(processes[pid].Metrics, driver.Gauge(key+"_mem", d.GetId(), "bytes", used, float64(d.GetMemoryBytes()), nil))
				}
			}
			one.Metrics = append(one.Metrics, driver.Gauge(key+"_mem", d.GetId(), "bytes", total, float64(d.GetMemoryBytes()), err))
		}
		if set.GetPerProcess() {
			for _, pid := range w.GetHostPids() {
				if p := processes[pid]; p != nil {
					one.Processes = append(one.Processes, p)
				}
			}
		}
		out = append(out, one)
	}
	return out
}

// usedBy returns the memory of a device that each of the processes uses.
func (r *report) usedBy(d *pb.Device, pids []int32) map[int32]float64 {
	out := map[int32]float64{}
	for _, n := range r.npus(d) {
		for _, c := range r.Contexts {
			pid, err := strconv.ParseInt(string(c.PID), 10, 32)
			if err != nil || c.NPU != n.Index || !slices.Contains(pids, int32(pid)) {
				continue
			}
			text := c.Memory
			if text == "" {
				text = c.Alloc
			}
			if used, err := driver.Quantity(text); err == nil {
				out[int32(pid)] += used
			}
		}
	}
	return out
}

package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// readings has the output of gc-inventory by device.
type readings struct {
	ipus map[string]ipu
	err  error
}

func (m *machine) look(ctx context.Context) readings {
	r := readings{ipus: map[string]ipu{}}
	all, err := m.inventory(ctx)
	r.err = err
	for _, one := range all {
		r.ipus[m.device(one).GetId()] = one
	}
	return r
}

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	r := m.look(ctx)
	return driver.Each(s, r.measure)
}

func (r readings) measure(d *pb.Device) []*pb.Metric {
	one := r.ipus[d.GetId()]
	gauge := func(name, unit, field string, most float64) *pb.Metric {
		v, err := one.number(field)
		if r.err != nil {
			err = r.err
		}
		return driver.Gauge(key+"_"+name, d.GetId(), unit, v, most, err)
	}
	total, _ := one.number("hexoatt total size (bytes)")
	return []*pb.Metric{
		gauge("util", "percent", "ipu utilisation", 100),
		gauge("power", "watt", "ipu power", 0),
		gauge("temperature", "celsius", "average die temp", 0),
		gauge("clock", "mhz", "clock", 0),
		gauge("host_mem", "bytes", "hexoatt active size (bytes)", total),
	}
}

// SampleWorkloads implements driver.WorkloadSampler. An IPU is used by one process at a time, which
// gc-inventory reports. If that process belongs to the workload, its values are measured rather
// than attributed.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	r := m.look(ctx)
	out := driver.Whole(s, set, r.measure)
	for i, w := range set.GetWorkloads() {
		own := map[int32]*pb.ProcessMetrics{}
		for _, pid := range w.GetHostPids() {
			own[pid] = &pb.ProcessMetrics{HostPid: pid}
		}
		for _, metric := range out[i].GetMetrics() {
			p := own[int32(r.ipus[metric.GetDeviceId()].whole("user process id"))]
			if p == nil || metric.GetQuality() != pb.Metric_ATTRIBUTED {
				continue
			}
			metric.Quality = pb.Metric_MEASURED
			p.Metrics = append(p.Metrics, metric)
		}
		for _, pid := range w.GetHostPids() {
			if p := own[pid]; set.GetPerProcess() && len(p.GetMetrics()) > 0 {
				out[i].Processes = append(out[i].Processes, p)
			}
		}
	}
	return out
}

package declarative

import (
	"context"
	"strconv"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	var out []*pb.Metric
	for _, list := range m.measure(ctx, s) {
		out = append(out, list...)
	}
	return out
}

// SampleWorkloads implements driver.WorkloadSampler. A device is allocated to one workload at a
// time, so its metrics are attributed to that one.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	byDevice := map[string][]*pb.Metric{}
	for i, list := range m.measure(ctx, s) {
		byDevice[s.GetDevices()[i].GetId()] = list
	}
	return driver.Whole(s, set, func(d *pb.Device) []*pb.Metric { return byDevice[d.GetId()] })
}

// measure runs the program once for all devices of a snapshot and returns their metrics in its
// order.
func (m *machine) measure(ctx context.Context, s *pb.DeviceSnapshot) [][]*pb.Metric {
	said, silence := m.ask(ctx)
	out := make([][]*pb.Metric, len(s.GetDevices()))
	for i, d := range s.GetDevices() {
		index, err := strconv.Atoi(d.GetAttributes()["index"])
		if m.Program == nil || err != nil {
			continue
		}
		one := said[m.subject(found{PCI: driver.PCI{Address: d.GetPciAddress()}, index: index})]
		gauge := func(name, unit, field, limit string, most float64) {
			v, err := one.number(m.Program, field)
			if silence != nil {
				err = silence
			}
			if top, err := one.number(m.Program, limit); err == nil {
				most = top
			}
			out[i] = append(out[i], driver.Gauge(m.Key+"_"+name, d.GetId(), unit, v, most, err))
		}
		gauge("util", "percent", "util", "", 100)
		gauge("mem", "bytes", "memory_used", "memory_total", float64(d.GetMemoryBytes()))
		gauge("power", "watt", "power", "power_max", 0)
		gauge("temperature", "celsius", "temperature", "temperature_max", 0)
	}
	return out
}

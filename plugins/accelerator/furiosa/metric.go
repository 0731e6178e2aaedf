package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	readings, err := m.smi(ctx)
	return driver.Each(s, func(d *pb.Device) []*pb.Metric { return m.measure(d, readings, err) })
}

// SampleWorkloads implements driver.WorkloadSampler. A card or group of elements is allocated to
// one workload at a time.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	readings, err := m.smi(ctx)
	return driver.Whole(s, set, func(d *pb.Device) []*pb.Metric { return m.measure(d, readings, err) })
}

// measure returns the metrics of a device. Power and temperature are measured per card. The driver
// reports the utilization of an RNGD's elements; for a Warboy, only furiosa-smi does.
func (m *machine) measure(d *pb.Device, readings map[string]reading, err error) []*pb.Metric {
	number := d.GetAttributes()["number"]
	if number == "" {
		return nil
	}
	id, memory := d.GetId(), float64(d.GetMemoryBytes())
	r, ok := readings["npu"+number]
	if err == nil && !ok {
		err = errUnknown
	}
	read := func(text driver.Scalar) (float64, error) {
		if !ok {
			return 0, err
		}
		return driver.Quantity(text)
	}
	var used, util float64
	var noMem, noUtil error
	if d.GetCapacity()[warboySlot] == "" {
		used, noMem = m.used(d)
		util, noUtil = m.busy(d)
	} else {
		used, noMem = read(r.Memory.DRAM.Used)
		if util, noUtil = r.busy(); !ok {
			noUtil = err
		}
	}
	out := []*pb.Metric{
		driver.Gauge(key+"_mem", id, "bytes", used, memory, noMem),
		driver.Gauge(key+"_util", id, "percent", util, 100, noUtil),
	}
	if d.GetParentId() != "" {
		return out
	}
	power, noPower := read(r.Power)
	hot, noHeat := read(r.Temperature)
	return append(out,
		driver.Gauge(key+"_power", id, "watt", power, 0, noPower),
		driver.Gauge(key+"_temperature", id, "celsius", hot, 0, noHeat),
	)
}

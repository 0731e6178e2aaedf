package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Sample implements driver.Sampler.
func (m *machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	return driver.Each(s, m.measure)
}

// SampleWorkloads implements driver.WorkloadSampler.
func (m *machine) SampleWorkloads(_ context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	return driver.Whole(s, set, m.measure)
}

// measure reads the card's sensors. The drivers do not report its utilization.
func (m *machine) measure(d *pb.Device) []*pb.Metric {
	dir := m.Sys("bus/pci/devices", d.GetPciAddress())
	hot, tooHot, noHeat := driver.Sensor(dir, "temp")
	power, most, noPower := driver.Sensor(dir, "power")
	return []*pb.Metric{
		driver.Gauge(key+"_power", d.GetId(), "watt", power, most, noPower),
		driver.Gauge(key+"_temperature", d.GetId(), "celsius", hot, tooHot, noHeat),
	}
}

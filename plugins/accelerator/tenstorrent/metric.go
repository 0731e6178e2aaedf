package main

import (
	"context"
	"errors"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Sample implements driver.Sampler. The driver does not report the utilization; the ratio of power
// to its limit is the best substitute.
func (m *machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	return driver.Each(s, m.measure)
}

var (
	errNoLimit = errors.New("no limit is known")
	errNoPower = errors.New("power is not known")
)

func (m *machine) measure(d *pb.Device) []*pb.Metric {
	number := d.GetAttributes()["number"]
	if number == "" {
		return nil
	}
	entry, id := "tenstorrent!"+number, d.GetId()
	hot, tooHot, noHeat := driver.Sensor(m.class(entry, "device"), "temp")
	power, most, noPower := driver.Sensor(m.class(entry, "device"), "power")
	clock, noClock := driver.Float(m.class(entry, "tt_aiclk"))
	watts := driver.Gauge(key+"_power", id, "watt", power, most, noPower)
	noUtil := noPower
	if watts.GetQuality() == pb.Metric_UNAVAILABLE {
		noUtil = errNoPower
	}
	if noUtil == nil && most == 0 {
		noUtil = errNoLimit
	}
	return []*pb.Metric{
		driver.Derived(driver.Gauge(key+"_util", id, "percent", min(100, 100*power/max(most, 1)), 100, noUtil)),
		watts,
		driver.Gauge(key+"_temperature", id, "celsius", hot, tooHot, noHeat),
		driver.Gauge(key+"_clock", id, "mhz", clock, 0, noClock),
	}
}

// SampleWorkloads implements driver.WorkloadSampler. A board is allocated to one workload at a
// time, so its metrics are attributed to that one.
func (m *machine) SampleWorkloads(_ context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	return driver.Whole(s, set, m.measure)
}

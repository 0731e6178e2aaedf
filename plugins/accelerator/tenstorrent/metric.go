package main

import (
	"context"
	"errors"
	"io/fs"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// scale of the kernel's sensors: thousandths of degrees, millionths of watts.
var scale = map[string]float64{"temp": 1000, "power": 1_000_000}

// sensor reads a board's sensor and its limit, 0 when there is none.
func (m *machine) sensor(entry, kind string) (value, limit float64, err error) {
	dir := m.class(entry, "device/hwmon")
	names := driver.Names(dir)
	if len(names) == 0 {
		return 0, 0, fs.ErrNotExist
	}
	value, err = driver.Float(dir, names[0], kind+"1_input")
	if top, err := driver.Float(dir, names[0], kind+"1_max"); err == nil && top > 0 {
		limit = top / scale[kind]
	}
	return value / scale[kind], limit, err
}

// Sample implements driver.Sampler. How busy a board is the driver does not tell;
// power drawn of power allowed is the nearest to it.
func (m *machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	var out []*pb.Metric
	for _, d := range s.GetDevices() {
		out = append(out, m.measure(d)...)
	}
	return out
}

var errNoLimit = errors.New("no limit is known")

func (m *machine) measure(d *pb.Device) []*pb.Metric {
	number := d.GetAttributes()["number"]
	if number == "" {
		return nil
	}
	entry, id := "tenstorrent!"+number, d.GetId()
	hot, tooHot, noHeat := m.sensor(entry, "temp")
	power, most, noPower := m.sensor(entry, "power")
	clock, noClock := driver.Float(m.class(entry, "tt_aiclk"))
	noUtil := noPower
	if noUtil == nil && most == 0 {
		noUtil = errNoLimit
	}
	return []*pb.Metric{
		driver.Derived(driver.Gauge(key+"_util", id, "percent", min(100, 100*power/max(most, 1)), 100, noUtil)),
		driver.Gauge(key+"_power", id, "watt", power, most, noPower),
		driver.Gauge(key+"_temperature", id, "celsius", hot, tooHot, noHeat),
		driver.Gauge(key+"_clock", id, "mhz", clock, 0, noClock),
	}
}

// SampleWorkloads implements driver.WorkloadSampler. A board belongs to one
// workload at a time, so what it does it does for it.
func (m *machine) SampleWorkloads(_ context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	return driver.Whole(s, set, m.measure)
}

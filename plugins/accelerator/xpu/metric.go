package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

var errOnce = errors.New("a counter must be read twice")

// joules is a read of an energy counter.
type joules struct {
	value float64
	at    time.Time
}

// Sample implements driver.Sampler. The kernel reports utilization and used memory only per
// process: see SampleWorkloads.
func (m *machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	return driver.Each(s, func(d *pb.Device) []*pb.Metric {
		p, ok := m.PCIAt(d.GetPciAddress())
		if !ok || d.GetAttributes()["node"] == "" {
			return nil
		}
		watts, noPower := m.power(d.GetId(), p.Dir)
		limit, _ := sensor(p.Dir, "power1_max", 1e6)
		degrees, most, noHeat := heat(p.Dir)
		clock, noClock := clock(p.Dir)
		return []*pb.Metric{
			driver.Gauge(key+"_power", d.GetId(), "watt", watts, limit, noPower),
			driver.Gauge(key+"_temperature", d.GetId(), "celsius", degrees, most, noHeat),
			driver.Gauge(key+"_clock", d.GetId(), "mhz", clock, 0, noClock),
		}
	})
}

// sensor reads a file of the kernel's hwmon. parts is the divisor of its unit.
func sensor(dir, name string, parts float64) (float64, error) {
	for _, hwmon := range driver.Names(dir, "hwmon") {
		if file := filepath.Join(dir, "hwmon", hwmon, name); driver.Exists(file) {
			n, err := driver.Float(file)
			return n / parts, err
		}
	}
	return 0, fs.ErrNotExist
}

// heat returns the temperature of the package, which is temp2 of xe and temp1 of i915, and the
// critical temperature, or 0 if there is none.
func heat(dir string) (now, limit float64, err error) {
	for _, name := range []string{"temp2", "temp1"} {
		if now, err = sensor(dir, name+"_input", 1000); err == nil {
			limit, _ = sensor(dir, name+"_crit", 1000)
			return now, limit, nil
		}
	}
	return 0, 0, err
}

// power returns a GPU's average power between two reads of its energy counter.
func (m *machine) power(id, dir string) (float64, error) {
	value, err := sensor(dir, "energy1_input", 1e6)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, now := m.energy[id], m.now()
	m.energy[id] = joules{value, now}
	if took := now.Sub(was.at).Seconds(); !was.at.IsZero() && took > 0 && value >= was.value {
		return (value - was.value) / took, nil
	}
	return 0, errOnce // the first read, or the counter has restarted
}

// clock returns the frequency of the first tile's compute engines.
func clock(dir string) (float64, error) {
	if n, err := driver.Float(dir, "tile0/gt0/freq0/act_freq"); err == nil {
		return n, nil
	}
	for _, name := range driver.Names(dir, "drm") {
		if cardForm.MatchString(name) {
			return driver.Float(dir, "drm", name, "gt_act_freq_mhz")
		}
	}
	return 0, fmt.Errorf("clock: %w", fs.ErrNotExist)
}

package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// sensor reads one of the kernel's sensors of a PCI function and its limit, 0 when
// there is none.
func sensor(dir, kind string, scale float64) (value, limit float64, err error) {
	names := driver.Names(dir, "hwmon")
	if len(names) == 0 {
		return 0, 0, fs.ErrNotExist
	}
	dir = filepath.Join(dir, "hwmon", names[0])
	for _, name := range []string{"_max", "_crit"} {
		if top, err := driver.Float(dir, kind+"1"+name); err == nil && top > 0 {
			limit = top / scale
		}
	}
	value, err = driver.Float(dir, kind+"1_input")
	return value / scale, limit, err
}

// readings are what is known of the cards at one moment.
type readings struct {
	cards   map[string]card // by address
	monitor report
	status  report
}

func (m *machine) look(ctx context.Context) readings {
	r := readings{cards: map[string]card{}}
	for _, c := range m.cards() {
		r.cards[c.Address] = c
	}
	if len(r.cards) > 0 { // what tsp-ctl does not tell, the sensors may
		r.monitor, _ = m.ask(ctx, "monitor")
		r.status, _ = m.ask(ctx, "status")
	}
	return r
}

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	r := m.look(ctx)
	var out []*pb.Metric
	for _, d := range s.GetDevices() {
		out = append(out, r.measure(d)...)
	}
	return out
}

// SampleWorkloads implements driver.WorkloadSampler. One process locks a card for
// itself, so what it does it does for one workload.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	return driver.Whole(s, set, m.look(ctx).measure)
}

var errUntold = errors.New("nothing tells it")

func (r readings) measure(d *pb.Device) []*pb.Metric {
	c, id := r.cards[d.GetId()], d.GetId()
	gauge := func(name, unit, kind string, scale float64, said *float64) *pb.Metric {
		value, limit, err := sensor(c.Dir, kind, scale)
		if said != nil {
			value, err = *said, nil
		}
		return driver.Gauge(key+"_"+name, id, unit, value, limit, err)
	}
	monitor, status := r.monitor.of(c), r.status.of(c)
	held, err := 0.0, errUntold
	if status.locked != nil {
		err = nil
		if *status.locked {
			held = 1
		}
	}
	return []*pb.Metric{
		gauge("power", "watt", "power", 1_000_000, monitor.power),
		gauge("temperature", "celsius", "temp", 1000, monitor.temperature),
		driver.Gauge(key+"_locked", id, "count", held, 1, err),
	}
}

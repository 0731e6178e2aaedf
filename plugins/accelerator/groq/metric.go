package main

import (
	"context"
	"errors"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// readings has the state of the cards at one moment.
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
	if len(r.cards) > 0 { // the sensors may have values that tsp-ctl lacks
		r.monitor, _ = m.ask(ctx, "monitor")
		r.status, _ = m.ask(ctx, "status")
	}
	return r
}

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	r := m.look(ctx)
	return driver.Each(s, r.measure)
}

// SampleWorkloads implements driver.WorkloadSampler. A process locks a card for itself, so a card's
// metrics are attributed to one workload.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	return driver.Whole(s, set, m.look(ctx).measure)
}

var errNotReported = errors.New("no source reports it")

func (r readings) measure(d *pb.Device) []*pb.Metric {
	c, id := r.cards[d.GetId()], d.GetId()
	gauge := func(name, unit, kind string, said *float64) *pb.Metric {
		value, limit, err := driver.Sensor(c.Dir, kind)
		if said != nil {
			value, err = *said, nil
		}
		return driver.Gauge(key+"_"+name, id, unit, value, limit, err)
	}
	monitor, status := r.monitor.of(c), r.status.of(c)
	held, err := 0.0, errNotReported
	if status.locked != nil {
		err = nil
		if *status.locked {
			held = 1
		}
	}
	return []*pb.Metric{
		gauge("power", "watt", "power", monitor.power),
		gauge("temperature", "celsius", "temp", monitor.temperature),
		driver.Gauge(key+"_locked", id, "count", held, 1, err),
	}
}

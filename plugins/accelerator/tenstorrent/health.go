package main

import (
	"time"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// pulse is the last value of a heartbeat and the time of its last change.
type pulse struct {
	beat uint64
	at   time.Time
}

// allOnes is the value of reads from a PCI device that does not respond.
const allOnes = 0xffff_ffff

// judge sets a device's health from the firmware's heartbeat and the board's temperature. An
// unhealthy board is not allocatable.
func (m *machine) judge(d *pb.Device, entry string) {
	unhealthy := func(format string, args ...any) {
		d.Health = pb.Health_HEALTH_UNHEALTHY
		driver.Reject(d, format, args...)
		d.HealthMessage = d.RejectReasons[len(d.RejectReasons)-1]
	}
	path := m.class(entry, "tt_heartbeat")
	if !driver.Exists(path) { // old firmware
		d.Attributes["heartbeat"] = driver.NotReported
	} else {
		beat, err := driver.Uint(path)
		switch still := m.still(d.GetId(), beat); {
		case err != nil:
			d.Health, d.HealthMessage = pb.Health_HEALTH_UNKNOWN, err.Error()
			driver.Reject(d, "%v", err)
		case beat == allOnes:
			unhealthy("the board does not answer on the bus")
		case m.config.Heartbeat > 0 && still >= time.Duration(m.config.Heartbeat)*time.Second:
			unhealthy("the firmware's heartbeat has not changed for more than %d s", m.config.Heartbeat)
		}
	}
	if hot, limit, err := driver.Sensor(m.class(entry, "device"), "temp"); err == nil && limit > 0 && hot >= limit {
		unhealthy("%.0f °C, of at most %.0f", hot, limit)
	}
}

// still returns how long a heartbeat has not changed.
func (m *machine) still(id string, beat uint64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	was, known := m.pulses[id]
	if !known || was.beat != beat {
		m.pulses[id] = pulse{beat, now}
		return 0
	}
	return now.Sub(was.at)
}

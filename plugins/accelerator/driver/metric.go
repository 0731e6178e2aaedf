package driver

import (
	"math"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// ranges are the values that a chip in use can have, by unit. What lies outside was
// told in another unit, or by a sensor that is broken; 0 is outside for a temperature,
// which many drivers report for a sensor that does not exist.
var ranges = map[string]struct{ least, most float64 }{
	"celsius": {1, 200},
	"watt":    {0.01, 20_000},
	"mhz":     {0, 100_000},
}

// beyond is how far a value may pass its capacity: power and temperature pass their
// limits for a moment, parts and bytes do not pass the whole.
var beyond = map[string]float64{"watt": 10, "celsius": 2, "percent": 1, "bytes": 1}

// Gauge is a measurement; with an error, or with a value that cannot be true, it says
// that there is none: it is never made to fit. A capacity of 0 is unknown. Name begins
// with the plugin's key.
func Gauge(name, device, unit string, value, capacity float64, err error) *pb.Metric {
	m := &pb.Metric{Name: name, DeviceId: device, Unit: unit, Kind: pb.Metric_GAUGE, Quality: pb.Metric_UNAVAILABLE}
	if math.IsNaN(capacity) || math.IsInf(capacity, 0) {
		capacity = 0
	}
	if err != nil || !plausible(unit, value, capacity) {
		return m
	}
	m.Value, m.Quality = value, pb.Metric_MEASURED
	if capacity > 0 {
		c := max(capacity, value)
		m.Capacity = &c
	}
	return m
}

// plausible reports whether a value can be true.
func plausible(unit string, value, capacity float64) bool {
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return false
	}
	if r, ok := ranges[unit]; ok && (value < r.least || value > r.most) && (value != 0 || unit == "celsius") {
		return false
	}
	times, bounded := beyond[unit]
	return !bounded || capacity <= 0 || value <= capacity*times
}

// Derived says that a gauge was not measured as such.
func Derived(m *pb.Metric) *pb.Metric {
	if m.Quality == pb.Metric_MEASURED {
		m.Quality = pb.Metric_ESTIMATED
	}
	return m
}

// Attributed says that a gauge is a device's figure, of which a workload has a part.
func Attributed(m *pb.Metric) *pb.Metric {
	if m.Quality == pb.Metric_MEASURED {
		m.Quality = pb.Metric_ATTRIBUTED
	}
	return m
}

// Count is a counter, which only grows.
func Count(name, device, unit string, value float64, err error) *pb.Metric {
	m := Gauge(name, device, unit, value, 0, err)
	m.Kind = pb.Metric_COUNTER
	return m
}

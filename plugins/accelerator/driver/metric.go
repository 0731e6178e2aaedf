package driver

import (
	"math"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Gauge is a measurement; with an error it says that there is none. A capacity of
// 0 is unknown. Name begins with the plugin's key.
func Gauge(name, device, unit string, value, capacity float64, err error) *pb.Metric {
	m := &pb.Metric{Name: name, DeviceId: device, Unit: unit, Kind: pb.Metric_GAUGE, Quality: pb.Metric_UNAVAILABLE}
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 && unit != "celsius" {
		return m
	}
	m.Value, m.Quality = value, pb.Metric_MEASURED
	if capacity > 0 && !math.IsInf(capacity, 0) {
		c := max(capacity, value) // power may pass its limit for a moment
		m.Capacity = &c
	}
	return m
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

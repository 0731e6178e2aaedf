package driver

import (
	"math"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// ranges are the possible values of a device in use, by unit. Other values come from a faulty
// sensor or have another unit. A temperature of 0 is excluded, because many drivers report it for a
// missing sensor.
var ranges = map[string]struct{ least, most float64 }{
	"celsius": {1, 200},
	"watt":    {0.01, 20_000},
	"mhz":     {0, 100_000},
}

// beyond is the factor by which a value may exceed its capacity: power and temperature exceed their
// limits for a moment, percentages and bytes cannot.
var beyond = map[string]float64{"watt": 10, "celsius": 2, "percent": 1, "bytes": 1}

// Gauge returns a measurement, or one marked as unavailable if there is an error or the value is
// impossible; values are never adjusted. A capacity of 0 is unknown. name must begin with the
// plugin's key.
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

// plausible reports whether a value is possible.
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

// Derived marks a gauge as calculated rather than measured.
func Derived(m *pb.Metric) *pb.Metric {
	if m.Quality == pb.Metric_MEASURED {
		m.Quality = pb.Metric_ESTIMATED
	}
	return m
}

// Attributed marks a gauge as a workload's part of a device's value.
func Attributed(m *pb.Metric) *pb.Metric {
	if m.Quality == pb.Metric_MEASURED {
		m.Quality = pb.Metric_ATTRIBUTED
	}
	return m
}

// Count returns a counter, which only grows.
func Count(name, device, unit string, value float64, err error) *pb.Metric {
	m := Gauge(name, device, unit, value, 0, err)
	m.Kind = pb.Metric_COUNTER
	return m
}

// ByID returns the devices of a snapshot by id.
func ByID(s *pb.DeviceSnapshot) map[string]*pb.Device {
	all := map[string]*pb.Device{}
	for _, d := range s.GetDevices() {
		all[d.GetId()] = d
	}
	return all
}

// Each measures the devices of a snapshot one by one.
func Each(s *pb.DeviceSnapshot, measure func(*pb.Device) []*pb.Metric) []*pb.Metric {
	var all []*pb.Metric
	for _, d := range s.GetDevices() {
		all = append(all, measure(d)...)
	}
	return all
}

// Whole measures workloads with exclusive devices: the metrics of a device are attributed to its
// workload.
func Whole(s *pb.DeviceSnapshot, set *pb.WorkloadSet, measure func(*pb.Device) []*pb.Metric) []*pb.WorkloadMetrics {
	devices := ByID(s)
	var out []*pb.WorkloadMetrics
	for _, w := range set.GetWorkloads() {
		one := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
		for _, a := range w.GetAllocations() {
			d := devices[a.GetDeviceId()]
			if d == nil {
				continue
			}
			for _, metric := range measure(d) {
				one.Metrics = append(one.Metrics, Attributed(metric))
			}
		}
		out = append(out, one)
	}
	return out
}

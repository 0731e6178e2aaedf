package volume

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// gauge is one value of a volume's state; nil means unknown, and such a gauge is not exported.
type gauge struct {
	desc *prometheus.Desc
	read func(State) *float64
}

func describe(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("berth_storage_volume_"+name, help, append([]string{"volume"}, more...), nil)
}

var healthDesc = describe("health", "1 for the state a volume is in.", "state")

// gauges show the values of the last query; a scrape never calls the product.
var gauges = []gauge{
	ofCapacity("total_bytes", "Size; none of an elastic volume.", func(c *volumepb.CapacityReport) *float64 {
		if c.Elastic {
			return nil
		}
		return float(&c.TotalBytes)
	}),
	ofCapacity("used_bytes", "Bytes in use.", func(c *volumepb.CapacityReport) *float64 { return float(&c.UsedBytes) }),
	ofCapacity("available_bytes", "Bytes that users may still store.", func(c *volumepb.CapacityReport) *float64 { return float(&c.AvailableBytes) }),
	ofCapacity("total_inodes", "Files it can hold.", func(c *volumepb.CapacityReport) *float64 { return float(c.TotalInodes) }),
	ofCapacity("used_inodes", "Files it holds.", func(c *volumepb.CapacityReport) *float64 { return float(c.UsedInodes) }),
	ofRates("read_ops_per_second", "Reads a second.", 1, func(p *volumepb.PerformanceSample) *float64 { return p.ReadOpsPerSecond }),
	ofRates("write_ops_per_second", "Writes a second.", 1, func(p *volumepb.PerformanceSample) *float64 { return p.WriteOpsPerSecond }),
	ofRates("read_bytes_per_second", "Bytes read a second.", 1, func(p *volumepb.PerformanceSample) *float64 { return p.ReadBytesPerSecond }),
	ofRates("write_bytes_per_second", "Bytes written a second.", 1, func(p *volumepb.PerformanceSample) *float64 { return p.WriteBytesPerSecond }),
	ofRates("read_latency_seconds", "Mean time of a read.", 1e-6, func(p *volumepb.PerformanceSample) *float64 { return p.ReadLatencyUs }),
	ofRates("write_latency_seconds", "Mean time of a write.", 1e-6, func(p *volumepb.PerformanceSample) *float64 { return p.WriteLatencyUs }),
}

func ofCapacity(name, help string, read func(*volumepb.CapacityReport) *float64) gauge {
	return gauge{describe(name, help), func(s State) *float64 {
		if s.Capacity == nil {
			return nil
		}
		return read(s.Capacity)
	}}
}

func ofRates(name, help string, unit float64, read func(*volumepb.PerformanceSample) *float64) gauge {
	return gauge{describe(name, help), func(s State) *float64 {
		if s.Performance == nil {
			return nil
		}
		v := read(s.Performance)
		if v == nil {
			return nil
		}
		scaled := *v * unit
		return &scaled
	}}
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// Describe implements prometheus.Collector.
func (s *Set) Describe(out chan<- *prometheus.Desc) {
	out <- healthDesc
	for _, g := range gauges {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (s *Set) Collect(out chan<- prometheus.Metric) {
	for _, v := range s.volumes {
		state := v.State()
		for h, name := range map[volumepb.HealthReport_State]string{
			volumepb.HealthReport_HEALTHY: "healthy", volumepb.HealthReport_DEGRADED: "degraded", volumepb.HealthReport_UNAVAILABLE: "unavailable",
		} {
			is := 0.0
			if state.Health == h {
				is = 1
			}
			out <- prometheus.MustNewConstMetric(healthDesc, prometheus.GaugeValue, is, v.Name(), name)
		}
		for _, g := range gauges {
			if f := g.read(state); f != nil {
				out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, *f, v.Name())
			}
		}
	}
}

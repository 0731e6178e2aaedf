package remotewrite

import "github.com/prometheus/client_golang/prometheus"

// meter counts what is sent.
type meter struct {
	sent, failures prometheus.Counter
	dropped        *prometheus.CounterVec
	newest         prometheus.Gauge
}

func newMeter(r prometheus.Registerer) *meter {
	m := &meter{
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_remote_write_samples_total", Help: "Samples that the receiver of remote write has taken.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_remote_write_failures_total", Help: "Requests of remote write that failed and are repeated.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_remote_write_dropped_samples_total", Help: "Samples that remote write has not sent.",
		}, []string{"reason"}),
		newest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "berth_remote_write_newest_timestamp_seconds", Help: "The time of the newest samples that remote write has sent; 0 before the first.",
		}),
	}
	for _, reason := range []string{"old", "refused", "unknown"} {
		m.dropped.WithLabelValues(reason)
	}
	if r != nil {
		r.MustRegister(m.sent, m.failures, m.dropped, m.newest)
	}
	return m
}

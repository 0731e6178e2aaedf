package series

import (
	"github.com/prometheus/client_golang/prometheus"
)

// meter counts what is stored.
type meter struct {
	samples, dropped, bytes prometheus.Counter
	merged                  *prometheus.HistogramVec
}

func newMeter(r prometheus.Registerer) *meter {
	m := &meter{
		samples: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_series_samples_total", Help: "Samples of the history that were stored.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_series_dropped_samples_total", Help: "Samples of the history that were lost, because the database did not take them.",
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_series_stored_bytes_total", Help: "Bytes of stored samples, without those of indexes.",
		}),
		merged: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "berth_series_merge_seconds", Help: "Time for merging the points of one span into coarser ones.",
			Buckets: []float64{.1, .5, 1, 5, 15, 60, 300, 1200},
		}, []string{"grain"}),
	}
	for g := minutes; g < grains; g++ {
		m.merged.WithLabelValues(g.String())
	}
	if r != nil {
		r.MustRegister(m.samples, m.dropped, m.bytes, m.merged)
	}
	return m
}

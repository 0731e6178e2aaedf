package event

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// meter measures the delivery of events to other managers.
type meter struct {
	delay prometheus.Histogram
	lost  prometheus.Counter
}

func newMeter(to prometheus.Registerer) meter {
	f := promauto.With(to)
	return meter{
		delay: f.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_event_delay_seconds", Help: "Time until an event of this manager returned to it through Redis, which is when the others have it.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10},
		}),
		lost: f.NewCounter(prometheus.CounterOpts{
			Name: "berth_events_lost_total", Help: "Events of this manager that did not reach the others, which read everything again instead.",
		}),
	}
}

// Measure registers the metrics of the bus. Call it before Run.
func (b *Bus) Measure(to prometheus.Registerer) {
	b.meter = newMeter(to)
	promauto.With(to).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_events_waiting", Help: "Events that wait to be sent to Redis.",
	}, func() float64 { return float64(len(b.outbox)) })
}

// back records that an event of this manager has returned.
func (m meter) back(sent int64) {
	if sent > 0 {
		m.delay.Observe(max(time.Since(time.UnixMicro(sent)), 0).Seconds())
	}
}

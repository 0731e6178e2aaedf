package leader

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/internal/clock"
)

// meter reports whether this manager leads.
type meter struct {
	leads, since prometheus.Gauge
	won          prometheus.Counter
}

func newMeter(to prometheus.Registerer) meter {
	f := promauto.With(to)
	return meter{
		leads: f.NewGauge(prometheus.GaugeOpts{Name: "berth_leader", Help: "1 while this manager leads the cluster, else 0."}),
		since: f.NewGauge(prometheus.GaugeOpts{Name: "berth_leader_since_timestamp_seconds", Help: "Since when this manager leads; 0 while it does not."}),
		won:   f.NewCounter(prometheus.CounterOpts{Name: "berth_elections_won_total", Help: "Elections that this manager won and led after."}),
	}
}

func (m meter) begin() {
	m.won.Inc()
	m.since.Set(float64(clock.Now().Unix()))
	m.leads.Set(1)
}

func (m meter) end() {
	m.leads.Set(0)
	m.since.Set(0)
}

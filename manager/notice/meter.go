package notice

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/internal/noticekind"
)

// meter has the metrics.
type meter struct {
	notices, deliveries *prometheus.CounterVec
	age                 prometheus.Gauge
}

func newMeter(to prometheus.Registerer) *meter {
	m := &meter{
		notices: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_notices_total", Help: "Events that people were notified of, by kind.",
		}, []string{"kind"}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_notice_deliveries_total", Help: "Attempts to send notices out of the platform, by channel and result, and dead letters.",
		}, []string{"channel", "result"}),
		age: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "berth_notice_queue_age_seconds", Help: "How long the oldest delivery is overdue; 0 if none is.",
		}),
	}
	for _, k := range noticekind.Kinds() {
		m.notices.WithLabelValues(string(k))
	}
	for _, c := range noticekind.Channels() {
		for _, result := range []string{"sent", "failed", "dead"} {
			m.deliveries.WithLabelValues(string(c), result)
		}
	}
	if to != nil {
		to.MustRegister(m.notices, m.deliveries, m.age)
	}
	return m
}

func (s *Service) count(r noticekind.Route, result string) {
	s.meter.deliveries.WithLabelValues(string(r), result).Inc()
}

// measureQueue sets the age of the oldest delivery that is due.
func (s *Service) measureQueue(ctx context.Context, now time.Time) {
	rows, err := s.Client.QueryContext(ctx, "SELECT coalesce(extract(epoch FROM $1::timestamptz - min(due_at)), 0) FROM notice_deliveries WHERE status = 'waiting'", now)
	if err != nil {
		return
	}
	defer rows.Close()
	var age float64
	for rows.Next() {
		if rows.Scan(&age) != nil {
			return
		}
	}
	s.meter.age.Set(max(0, age))
}

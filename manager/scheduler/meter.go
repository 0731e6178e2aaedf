package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/internal/report"
)

// stages that a session may wait at, in the order in which they are checked.
var stages = []string{report.StageGroup, report.StageHeld, report.StageLimits, report.StageRoom, report.StageOrder}

// meter measures the passes of this manager while it leads.
type meter struct {
	pass    prometheus.Histogram
	placed  prometheus.Counter
	refused *prometheus.CounterVec
}

func newMeter(to prometheus.Registerer) meter {
	f := promauto.With(to)
	m := meter{
		pass: f.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_scheduler_pass_seconds", Help: "Time of a pass of the scheduler, its commits included.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
		}),
		placed: f.NewCounter(prometheus.CounterOpts{
			Name: "berth_scheduler_placements_total", Help: "Sessions that the scheduler has placed on agents.",
		}),
		refused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_scheduler_refusals_total", Help: "Times that a session began to wait for another reason than before, by the stage that it did not pass.",
		}, []string{"reason"}),
	}
	for _, stage := range stages {
		m.refused.WithLabelValues(stage).Add(0)
	}
	return m
}

package image

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/ent/scanresult"
)

// meter counts what scans do.
type meter struct {
	scans, tags *prometheus.CounterVec
	requests    prometheus.Counter
}

func newMeter(r prometheus.Registerer) *meter {
	f := promauto.With(r)
	m := &meter{
		scans: f.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_registry_scans_total", Help: "Runs of scans of registries, by result: done, failed or interrupted.",
		}, []string{"result"}),
		tags: f.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_registry_scan_tags_total", Help: "Tags that scans have read, by outcome.",
		}, []string{"outcome"}),
		requests: f.NewCounter(prometheus.CounterOpts{
			Name: "berth_registry_requests_total", Help: "Requests of scans to registries and their token servers.",
		}),
	}
	for _, result := range []string{"done", "failed", "interrupted"} {
		m.scans.WithLabelValues(result)
	}
	for _, outcome := range []scanresult.Outcome{
		scanresult.OutcomeNew, scanresult.OutcomeMoved, scanresult.OutcomeUnchanged, scanresult.OutcomeSkipped, scanresult.OutcomeFailed,
	} {
		m.tags.WithLabelValues(string(outcome))
	}
	return m
}

package image

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/ent/scanresult"
)

// meter counts what scans do.
type meter struct {
	scans, tags  *prometheus.CounterVec
	requests     prometheus.Counter
	unsigned     prometheus.Counter
	sweeps       *prometheus.CounterVec
	swept        prometheus.Counter
	stored, free prometheus.Gauge
	webhooks     *prometheus.CounterVec
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
		unsigned: f.NewCounter(prometheus.CounterOpts{
			Name: "berth_image_unsigned_refusals_total", Help: "Uses of images that were refused because no key of their registry has signed them.",
		}),
		sweeps: f.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_registry_sweeps_total", Help: "Sweeps of the registry for images of sessions, by result: done, failed or interrupted. Dry runs count.",
		}, []string{"result"}),
		swept: f.NewCounter(prometheus.CounterOpts{
			Name: "berth_registry_swept_bytes_total", Help: "Bytes that sweeps have freed.",
		}),
		stored: f.NewGauge(prometheus.GaugeOpts{
			Name: "berth_registry_stored_bytes", Help: "Bytes that the registry for images of sessions had after its last sweep.",
		}),
		free: f.NewGauge(prometheus.GaugeOpts{
			Name: "berth_registry_free_bytes", Help: "Free bytes of the disk of the registry for images of sessions at its last sweep.",
		}),
		webhooks: f.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_registry_webhooks_total", Help: "Requests of registries to webhooks, by result: accepted, ignored, refused, limited or broken.",
		}, []string{"result"}),
	}
	for _, result := range []string{"done", "failed", "interrupted"} {
		m.scans.WithLabelValues(result)
		m.sweeps.WithLabelValues(result)
	}
	for _, outcome := range []scanresult.Outcome{
		scanresult.OutcomeNew, scanresult.OutcomeMoved, scanresult.OutcomeUnchanged, scanresult.OutcomeSkipped, scanresult.OutcomeFailed,
	} {
		m.tags.WithLabelValues(string(outcome))
	}
	for _, result := range []string{hookAccepted, hookIgnored, hookRefused, hookLimited, hookBroken} {
		m.webhooks.WithLabelValues(result)
	}
	return m
}

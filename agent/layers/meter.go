package layers

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Meter counts what moves between agents.
type Meter struct {
	received *prometheus.CounterVec
	fetches  *prometheus.CounterVec
	sent     prometheus.Counter
	uploads  prometheus.Gauge
	refused  prometheus.Counter

	lazyBytes, lazyRefused prometheus.Counter
	lazyWaiting            prometheus.Gauge
}

// NewMeter registers the metrics; nil registers none.
func NewMeter(to prometheus.Registerer) *Meter {
	f := promauto.With(to)
	m := &Meter{
		received: f.NewCounterVec(prometheus.CounterOpts{Name: "berth_agent_image_received_bytes_total", Help: "Bytes of images that the agent has received, by source: registry, mirror or agent."}, []string{"source"}),
		fetches:  f.NewCounterVec(prometheus.CounterOpts{Name: "berth_agent_image_fetches_total", Help: "Fetches of parts of images that ended, by source and result: ok, failed, or corrupt if the bytes were wrong."}, []string{"source", "result"}),
		sent:     f.NewCounter(prometheus.CounterOpts{Name: "berth_agent_image_sent_bytes_total", Help: "Bytes of images that the agent has sent to other agents."}),
		uploads:  f.NewGauge(prometheus.GaugeOpts{Name: "berth_agent_image_uploads", Help: "Parts of images that the agent is sending to other agents."}),
		refused:  f.NewCounter(prometheus.CounterOpts{Name: "berth_agent_image_requests_refused_total", Help: "Requests of other agents for parts of images that lacked a valid ticket, or whose image does not have the part."}),

		lazyBytes:   f.NewCounter(prometheus.CounterOpts{Name: "berth_agent_image_lazy_bytes_total", Help: "Bytes of images that were fetched because a program read a file before the image was complete."}),
		lazyRefused: f.NewCounter(prometheus.CounterOpts{Name: "berth_agent_image_lazy_refused_total", Help: "Parts of files that a registry sent with wrong bytes, so that programs did not get them."}),
		lazyWaiting: f.NewGauge(prometheus.GaugeOpts{Name: "berth_agent_image_lazy_waiting", Help: "Reads of files that wait for a registry, because their image is not complete."}),
	}
	for _, source := range []string{"registry", "mirror", "agent"} {
		m.received.WithLabelValues(source).Add(0)
		for _, result := range []string{"ok", "failed", "corrupt"} {
			m.fetches.WithLabelValues(source, result).Add(0)
		}
	}
	return m
}

// Received counts bytes from a source, "registry" or "mirror".
func (m *Meter) Received(source string, n int) { m.received.WithLabelValues(source).Add(float64(n)) }

// Fetched counts a fetch that ended, by its source, "registry", "mirror" or "agent", and result, "ok", "failed" or
// "corrupt".
func (m *Meter) Fetched(source, result string) { m.fetches.WithLabelValues(source, result).Inc() }

// Lazily counts what reads of files have fetched before their image was complete.
func (m *Meter) Lazily(bytes, refused int64, waiting int) {
	m.lazyBytes.Add(float64(max(bytes, 0)))
	m.lazyRefused.Add(float64(max(refused, 0)))
	m.lazyWaiting.Add(float64(waiting))
}

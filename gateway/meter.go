package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// meter are the metrics of a gateway.
type meter struct {
	requests *prometheus.CounterVec
	open     prometheus.Gauge
	errors   prometheus.Counter
	starts   *prometheus.CounterVec
	ports    *prometheus.GaugeVec
}

func newMeter(to prometheus.Registerer) *meter {
	with := promauto.With(to)
	return &meter{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_gateway_requests_total", Help: "Requests to apps of sessions, by the class of the answer.",
		}, []string{"status"}),
		open: with.NewGauge(prometheus.GaugeOpts{
			Name: "berth_gateway_open_requests", Help: "Requests and WebSockets to apps that are open through this gateway.",
		}),
		errors: with.NewCounter(prometheus.CounterOpts{
			Name: "berth_gateway_errors_total", Help: "Requests that an app did not answer, or answered in violation of HTTP.",
		}),
		starts: with.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_gateway_starts_total", Help: "Waits for an app to listen, which includes starting it, by result.",
		}, []string{"result"}),
		ports: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_gateway_app_ports", Help: "Ports for apps in port mode: assigned to an app of a session that has not ended, or free.",
		}, []string{"state"}),
	}
}

package transfer

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	received prometheus.Counter
	sent     prometheus.Counter
	open     *prometheus.GaugeVec
	errors   *prometheus.CounterVec
}

func newMetrics(to prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_storage_received_bytes_total", Help: "Bytes of uploads received.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_storage_sent_bytes_total", Help: "Bytes of downloads and archives sent.",
		}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_storage_open_transfers", Help: "Requests under way.",
		}, []string{"kind"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_storage_errors_total", Help: "Requests that failed, by error code.",
		}, []string{"kind", "code"}),
	}
	if to == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.received, m.sent, m.open, m.errors} {
		if err := to.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

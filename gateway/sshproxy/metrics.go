package sshproxy

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics of a proxy. NewMetrics registers them.
type Metrics struct {
	connections prometheus.Gauge
	channels    *prometheus.GaugeVec
	logins      *prometheus.CounterVec
}

// Kinds of channels, by their type in the protocol.
var kinds = map[string]string{
	"session": "session", "direct-tcpip": "forward", "direct-streamlocal@openssh.com": "forward",
	"forwarded-tcpip": "remote_forward", "forwarded-streamlocal@openssh.com": "remote_forward",
	"auth-agent@openssh.com": "agent", "x11": "x11",
}

// NewMetrics registers the metrics.
func NewMetrics(to prometheus.Registerer) *Metrics {
	m := &Metrics{
		connections: promauto.With(to).NewGauge(prometheus.GaugeOpts{
			Name: "berth_gateway_ssh_connections", Help: "SSH connections of people who have logged in.",
		}),
		channels: promauto.With(to).NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_gateway_ssh_channels", Help: "Open channels of SSH connections.",
		}, []string{"kind"}),
		logins: promauto.With(to).NewCounterVec(prometheus.CounterOpts{
			Name: "berth_gateway_ssh_logins_total", Help: "SSH logins, by result: accepted, refused, or limit for those above a limit.",
		}, []string{"result"}),
	}
	for _, kind := range kinds {
		m.channels.WithLabelValues(kind)
	}
	for _, result := range []string{"accepted", "refused", "limit"} {
		m.logins.WithLabelValues(result)
	}
	return m
}

// opened counts an open connection until the returned function is called.
func (m *Metrics) opened() (closed func()) {
	m.connections.Inc()
	return m.connections.Dec
}

// channel counts an open channel until the returned function is called.
func (m *Metrics) channel(protocolType string) (closed func()) {
	g := m.channels.WithLabelValues(kinds[protocolType])
	g.Inc()
	return g.Dec
}

func (m *Metrics) login(result string) { m.logins.WithLabelValues(result).Inc() }

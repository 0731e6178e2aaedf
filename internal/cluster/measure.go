package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Expires returns the expiry of the CA's certificate.
func (ca *CA) Expires() time.Time { return ca.cert.NotAfter }

// Expires returns the expiry of the node's certificate, or the zero time before it joined.
func (n *Node) Expires() time.Time {
	if id := n.id.Load(); id != nil {
		return id.cert.NotAfter
	}
	return time.Time{}
}

// MeasureCertificate registers a metric of the expiry of a role's certificate.
func MeasureCertificate(to prometheus.Registerer, role, certificate string, expires func() time.Time) {
	promauto.With(to).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_certificate_expiry_timestamp_seconds", Help: "When a certificate of the cluster expires; 0 while there is none yet.",
		ConstLabels: prometheus.Labels{"role": role, "certificate": certificate},
	}, func() float64 {
		at := expires()
		if at.IsZero() {
			return 0
		}
		return float64(at.Unix())
	})
}

// Measure registers metrics of a node's certificate and of its tunnels.
func (n *Node) Measure(to prometheus.Registerer) {
	MeasureCertificate(to, n.cfg.Role, "node", n.Expires)
	promauto.With(to).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_managers_connected", Help: "Managers to whom a node has a tunnel.",
		ConstLabels: prometheus.Labels{"role": n.cfg.Role},
	}, func() float64 { return float64(len(n.Clients())) })
}

// Measure registers a metric of the tunnels of this manager.
func (h *Hub) Measure(to prometheus.Registerer) {
	for _, role := range []string{RoleAgent, RoleStorage} {
		promauto.With(to).NewGaugeFunc(prometheus.GaugeOpts{
			Name: "berth_tunnels", Help: "Nodes that are connected to this manager.",
			ConstLabels: prometheus.Labels{"role": role},
		}, func() float64 {
			n := 0
			for _, p := range h.Peers() {
				if p.Role == role {
					n++
				}
			}
			return float64(n)
		})
	}
}

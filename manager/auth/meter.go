package auth

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/internal/problem"
)

// Methods of authentication, as labels of metrics.
const (
	byLogin      = "login"      // e-mail and password
	byCredential = "credential" // a cookie, a token or a signature with a request
	bySocket     = "socket"     // the first message of a WebSocket
)

// newRefusals counts failed authentications.
func newRefusals(to prometheus.Registerer) *prometheus.CounterVec {
	c := promauto.With(to).NewCounterVec(prometheus.CounterOpts{
		Name: "berth_auth_failures_total", Help: "Logins and requests that were refused because of the client's credentials, by kind of credential and code.",
	}, []string{"kind", "code"})
	for _, kind := range []string{byLogin, byCredential, bySocket} {
		c.WithLabelValues(kind, problem.CodeUnauthenticated).Add(0)
	}
	return c
}

// refused counts an error of a route.
func (s *Service) refused(path string, err error) {
	kind := byCredential
	if strings.HasPrefix(path, "/auth/") {
		kind = byLogin
	}
	p, _ := problem.From(err)
	s.refusals.WithLabelValues(kind, p.Code).Inc()
}

// RefusedSocket counts a WebSocket whose first message did not authenticate.
func (s *Service) RefusedSocket(err error) {
	p, _ := problem.From(err)
	s.refusals.WithLabelValues(bySocket, p.Code).Inc()
}

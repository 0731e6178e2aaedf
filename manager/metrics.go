package manager

import (
	"crypto/subtle"
	"net/http"
	"os"
	"strings"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
)

// forScraping lets those read metrics who are on this machine or show the token of the
// operator's file. A request that a proxy on this machine forwards is not from here.
func (m *Manager) forScraping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok, err := m.mayScrape(r)
		if err == nil && !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			err = problem.Unauthenticated("metrics are for this machine and for who has the token of --metrics-token-file")
		}
		if err != nil {
			if !problem.WriteHTTP(w, r, err) {
				m.log.ErrorContext(r.Context(), "read metrics", "request", requestid.From(r.Context()), "error", err)
			}
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (m *Manager) mayScrape(r *http.Request) (bool, error) {
	if from := m.auth.ClientAddress(r); from.IsLoopback() && !forwarded(r.Header) {
		return true, nil
	}
	if m.cfg.MetricsTokenFile == "" {
		return false, nil
	}
	// Read again at each request, so that the operator can replace it.
	text, err := os.ReadFile(m.cfg.MetricsTokenFile)
	if err != nil {
		return false, err
	}
	token := strings.TrimSpace(string(text))
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token != "" && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1, nil
}

// forwarded reports whether a proxy says that the request comes from elsewhere.
func forwarded(h http.Header) bool {
	return h.Get("X-Forwarded-For") != "" || h.Get("Forwarded") != "" || h.Get("X-Real-Ip") != ""
}

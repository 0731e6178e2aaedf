package manager

import (
	"crypto/subtle"
	"net/http"
	"os"
	"strings"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
)

// forScraping serves metrics at the public address to clients with the token from the
// configured file. A local address does not suffice, since a proxy on this machine can forward
// requests from anywhere. Monitoring on this machine uses the address of --metrics.
func (m *Manager) forScraping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok, err := m.mayScrape(r)
		if err == nil && !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			err = problem.Unauthenticated("send the token of --metrics-token-file to read metrics at this address")
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
	if m.cfg.MetricsTokenFile == "" {
		return false, nil
	}
	// Read for each request, so that administrators can replace the file.
	text, err := os.ReadFile(m.cfg.MetricsTokenFile)
	if err != nil {
		return false, err
	}
	token := strings.TrimSpace(string(text))
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token != "" && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1, nil
}

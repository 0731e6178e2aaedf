package manager

import (
	"crypto/subtle"
	"net/http"
	"os"
	"strings"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
)

// forScraping lets those read metrics at the public address who show the token of the
// operator's file. That a request comes from this machine proves nothing: a proxy here may
// forward it without a word. Monitoring on this machine has the address of --metrics.
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
	// Read again at each request, so that the operator can replace it.
	text, err := os.ReadFile(m.cfg.MetricsTokenFile)
	if err != nil {
		return false, err
	}
	token := strings.TrimSpace(string(text))
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token != "" && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1, nil
}

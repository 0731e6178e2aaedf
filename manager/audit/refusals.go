package audit

import (
	"encoding/json"
	"net/http"

	"github.com/berthhq/berth/internal/problem"
)

// Refusals wraps next in gate, and records requests that the gate itself rejects as the
// action. Before authentication, the row has an address and no actor.
func (s *Service) Refusals(action string, gate func(http.Handler) http.Handler, next http.Handler) http.Handler {
	inner := gate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, ok := w.(*answer); ok {
			w = a.ResponseWriter // next may hijack, flush and stream
		}
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		inner.ServeHTTP(a, r)
		var p struct{ Code, Detail string }
		if len(a.problem) > 0 && json.Unmarshal(a.problem, &p) == nil && Denial(p.Code) {
			s.Record(r.Context(), Entry{Action: action, Result: p.Code, Message: p.Detail})
		}
	})
}

// answer captures the problem of a rejection.
type answer struct {
	http.ResponseWriter
	refused bool
	problem []byte
}

func (a *answer) WriteHeader(status int) {
	a.refused = problem.Status(problem.CodeUnauthenticated) == status || problem.Status(problem.CodePermissionDenied) == status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.refused {
		a.problem = append(a.problem, b...)
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the underlying writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

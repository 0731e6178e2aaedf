package serving

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/manager/deployment/key"
)

const (
	// maxOpen limits the requests of one user that are open at this gateway, and maxVisits those of one network without
	// a key.
	maxOpen   = 2000
	maxVisits = 100
	// maxHeaders limits the list of headers of a preflight, in bytes.
	maxHeaders = 2 << 10
	// statusLeft is counted for a client that left before the answer.
	statusLeft = 499
)

// Own reports whether a path is one of the APIs of models.
func Own(path string) bool {
	if rest, is := strings.CutPrefix(path, "/deployments/"); is {
		_, rest, _ = strings.Cut(rest, "/")
		path = "/" + rest
		return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/api/")
	}
	return strings.HasPrefix(path, "/v1/") || slices.Contains([]string{"/api/chat", "/api/generate", "/api/embed"}, path)
}

// ServeHTTP serves the APIs of models. Browsers of other sites can call them, because a key is in a header that a site
// must know, and cookies are not read.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Berth-Recorded, Berth-Replica, Retry-After, X-Request-Id, X-Should-Retry")
	h.Set("Cache-Control", "no-store")
	if r.Method == http.MethodOptions {
		preflight(w, r)
		return
	}
	rec := &recorder{ResponseWriter: w}
	pattern := ""
	defer func() { s.meter.answered(pattern, cmp.Or(rec.status, statusLeft)) }()
	leave, err := s.admit(w, r)
	if err != nil {
		inference.Refuse(rec, err)
		return
	}
	defer leave()
	r.Header.Del("Cookie")
	defer func() { pattern = r.Pattern }()
	s.router.ServeHTTP(rec, r)
}

// preflight answers the question of a browser whether a page of another site can send a request.
func preflight(w http.ResponseWriter, r *http.Request) {
	allowed := "Authorization, Content-Type, X-Api-Key"
	if more := r.Header.Get("Access-Control-Request-Headers"); more != "" && len(more) <= maxHeaders {
		allowed += ", " + more
	}
	w.Header().Set("Access-Control-Allow-Headers", allowed)
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
	w.Header().Set("Access-Control-Max-Age", fmt.Sprint(int((2 * time.Hour).Seconds())))
	w.WriteHeader(http.StatusNoContent)
}

// admit checks what is known of a request before its body is read. leave frees its places.
func (s *Service) admit(w http.ResponseWriter, r *http.Request) (leave func(), err error) {
	for _, values := range r.URL.Query() {
		for _, v := range values {
			if strings.HasPrefix(v, key.Prefix) {
				return nil, fmt.Errorf("a key belongs in the header Authorization; addresses are logged, so revoke this key: %w", errdefs.ErrInvalidArgument)
			}
		}
	}
	h, err := s.holder(r.Context(), inference.KeyOf(r))
	if err != nil {
		return nil, err
	}
	tenant, most := tenantOf(r.Context(), h), maxVisits
	who := uuid.NewSHA1(uuid.Nil, []byte(tenant))
	if h != nil {
		most, who = maxOpen, h.UserID
	}
	out, ok := s.places.Try(who, most)
	if !ok {
		return nil, &inference.Limit{Message: fmt.Sprintf("%d of your requests are open at this gateway", most), After: time.Second}
	}
	if r.Body == nil || r.Body == http.NoBody {
		return out, nil
	}
	part, err := s.bodies.enter(tenant, h == nil, r.ContentLength)
	if err != nil {
		out()
		return nil, err
	}
	r.Body = &timely{ReadCloser: r.Body, conn: http.NewResponseController(w), claim: part}
	return func() { part.shrink(0); out() }, nil
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the underlying writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

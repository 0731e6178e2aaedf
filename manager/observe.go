package manager

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// observe logs and counts requests.
func (m *Manager) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r)
		took := time.Since(start)
		route := routeOf(r.URL.Path)
		m.requests.WithLabelValues(route, methodOf(r.Method), strconv.Itoa(rec.status)).Observe(took.Seconds())
		m.log.DebugContext(r.Context(), "request", "method", r.Method, "route", route, "status", rec.status, "took", took)
	})
}

// newRequests registers the metric of all HTTP requests.
func newRequests(to prometheus.Registerer) *prometheus.HistogramVec {
	return promauto.With(to).NewHistogramVec(prometheus.HistogramOpts{
		Name: "berth_http_request_seconds", Help: "Time to answer HTTP requests.",
		Buckets: []float64{.001, .005, .02, .1, .5, 2, 10},
	}, []string{"route", "method", "status"})
}

// methodOf returns the label of a method, so that arbitrary methods do not become labels.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK":
		return method
	}
	return "other"
}

// routeOf returns the label of a path without ids.
func routeOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "graphql", "auth", "sessions", "storage", "healthz", "readyz", "metrics":
		return "/" + first
	}
	return "/"
}

// recorder remembers the status, and supports flushing and hijacking.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// ReadFrom lets the kernel copy a file, sendfile(2), for downloads of storage.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) { return io.Copy(r.ResponseWriter, src) }

// Unwrap lets http.ResponseController reach the underlying writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush implements http.Flusher.
func (r *recorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Hijack implements http.Hijacker.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

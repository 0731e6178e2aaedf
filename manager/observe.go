package manager

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/viewer"
)

// observe logs and counts requests.
func (m *Manager) observe(next http.Handler) http.Handler {
	count := func(string, string, int, time.Duration) {}
	if m.cfg.Registry != nil {
		count = m.counters()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r)
		took := time.Since(start)
		route := routeOf(r.URL.Path)
		count(route, r.Method, rec.status, took)
		m.log.DebugContext(r.Context(), "request", "method", r.Method, "route", route, "status", rec.status, "took", took)
	})
}

func (m *Manager) counters() func(string, string, int, time.Duration) {
	f := promauto.With(m.cfg.Registry)
	requests := f.NewHistogramVec(prometheus.HistogramOpts{
		Name: "berth_http_request_seconds", Help: "Time to answer HTTP requests.",
		Buckets: []float64{.001, .005, .02, .1, .5, 2, 10},
	}, []string{"route", "method", "status"})
	sessions := f.NewGaugeVec(prometheus.GaugeOpts{Name: "berth_sessions", Help: "Sessions that are not over, by status."}, []string{"status"})
	nodes := f.NewGaugeVec(prometheus.GaugeOpts{Name: "berth_agents", Help: "Agents by status."}, []string{"status"})
	stopped := f.NewGauge(prometheus.GaugeOpts{Name: "berth_evictions_stopped", Help: "Resource groups where too many agents are out of reach at once for sessions to end."})
	plugins := newPluginGauges(m.cfg.Registry)
	conditions := f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "berth_agent_condition", Help: "1 while a condition of an agent's machine closes it to new sessions, else 0.",
	}, []string{"agent", "condition"})
	m.gauges = func(ctx context.Context) {
		m.countRows(ctx, sessions, nodes)
		m.countPlugins(ctx, plugins)
		m.showConditions(ctx, conditions)
		if list, err := m.agents.Disruptions(ctx); err == nil {
			stopped.Set(float64(len(list)))
		}
	}
	return func(route, method string, status int, took time.Duration) {
		requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
	}
}

// countRows refreshes the gauges that are counts of rows.
func (m *Manager) countRows(ctx context.Context, sessions, nodes *prometheus.GaugeVec) {
	ctx = viewer.SystemContext(ctx)
	var byStatus []struct {
		Status lifecycle.Status
		Count  int
	}
	err := m.client.Session.Query().Where(session.TerminatedAtIsNil()).
		GroupBy(session.FieldStatus).Aggregate(ent.Count()).Scan(ctx, &byStatus)
	if err == nil {
		sessions.Reset()
		for _, s := range byStatus {
			sessions.WithLabelValues(string(s.Status)).Set(float64(s.Count))
		}
	}
	for _, st := range []agent.Status{agent.StatusAlive, agent.StatusLost} {
		if n, err := m.client.Agent.Query().Where(agent.StatusEQ(st)).Count(ctx); err == nil {
			nodes.WithLabelValues(string(st)).Set(float64(n))
		}
	}
}

// showConditions refreshes the gauges of the machines that are alive.
func (m *Manager) showConditions(ctx context.Context, gauges *prometheus.GaugeVec) {
	alive, err := m.client.Agent.Query().Where(agent.StatusEQ(agent.StatusAlive)).
		Select(agent.FieldName, agent.FieldConditions).All(viewer.SystemContext(ctx))
	if err != nil {
		return
	}
	gauges.Reset()
	for _, a := range alive {
		for _, c := range a.Conditions {
			holds := 0.0
			if c.Status {
				holds = 1
			}
			gauges.WithLabelValues(a.Name, c.Type).Set(holds)
		}
	}
}

// routeOf keeps ids out of metric labels.
func routeOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "graphql", "auth", "sessions", "storage", "healthz", "readyz", "metrics":
		return "/" + first
	}
	return "/"
}

// recorder remembers the status, and still lets streams flush and hijack.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// ReadFrom leaves a file to the kernel, sendfile(2), as storage's downloads want it.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) { return io.Copy(r.ResponseWriter, src) }

// Unwrap lets http.ResponseController reach the writer below.
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

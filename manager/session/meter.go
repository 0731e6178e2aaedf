package session

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/requestid"
)

// reasonsOfEnds are the values of the label reason.
var reasonsOfEnds = []session.TerminationReason{
	session.TerminationReasonUserRequested, session.TerminationReasonCompleted, session.TerminationReasonFailed,
	session.TerminationReasonOutOfMemory, session.TerminationReasonDiskExceeded, session.TerminationReasonImagePullFailed,
	session.TerminationReasonStartFailed, session.TerminationReasonDeadlineExceeded, session.TerminationReasonAgentLost,
	session.TerminationReasonKernelLost, session.TerminationReasonShutdown, session.TerminationReasonDependencyFailed,
	session.TerminationReasonPreempted, session.TerminationReasonDrained, session.TerminationReasonIdle,
	session.TerminationReasonLifetime, session.TerminationReasonPendingTimeout,
}

// meter counts the sessions of this manager by their results.
type meter struct {
	created prometheus.Counter
	start   prometheus.Histogram
	ended   *prometheus.CounterVec
	failed  prometheus.Counter
	logs    prometheus.Gauge
}

func newMeter(to prometheus.Registerer) meter {
	f := promauto.With(to)
	m := meter{
		created: f.NewCounter(prometheus.CounterOpts{Name: "berth_sessions_created_total", Help: "Sessions created through this manager."}),
		start: f.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_session_start_seconds", Help: "Time from the creation of a session until it runs for the first time, including the wait for capacity.",
			Buckets: []float64{.5, 1, 2, 5, 15, 60, 300, 1800, 7200, 43200},
		}),
		ended:  f.NewCounterVec(prometheus.CounterOpts{Name: "berth_sessions_ended_total", Help: "Sessions that ended, by final status and reason."}, []string{"status", "reason"}),
		failed: f.NewCounter(prometheus.CounterOpts{Name: "berth_session_failed_starts_total", Help: "Attempts to start a session that failed and are repeated."}),
		logs:   f.NewGauge(prometheus.GaugeOpts{Name: "berth_log_streams", Help: "Logs of containers that are read through this manager now."}),
	}
	for _, reason := range reasonsOfEnds {
		for _, status := range lifecycle.All {
			if status.Final() {
				m.ended.WithLabelValues(string(status), string(reason)).Add(0)
			}
		}
	}
	return m
}

// noteMove measures a move that was committed, and writes one line for each end.
func (s *Service) noteMove(ctx context.Context, from *ent.Session, m move) {
	switch {
	case m.to == lifecycle.Running && from.Attempt == 1:
		s.meter.start.Observe(max(clock.Now().Sub(from.CreatedAt), 0).Seconds())
	case m.to == lifecycle.Pending && slices.Contains(lifecycle.Occupying, from.Status) && from.StartedAt == nil:
		s.meter.failed.Inc()
	case m.to.Final():
		reason := from.TerminationReason
		if m.reason != nil {
			reason = m.reason
		}
		why := ""
		if reason != nil {
			why = string(*reason)
		}
		s.meter.ended.WithLabelValues(string(m.to), why).Inc()
		s.Logger.InfoContext(s.onBehalf(ctx, from.ID), "session ended", "session", from.ID, "status", m.to, "reason", why, "message", m.message)
	}
}

// onBehalf returns a context with the id of the request that last changed a session, unless ctx has
// one: log lines of this manager and of the agents then name that request.
func (s *Service) onBehalf(ctx context.Context, id uuid.UUID) context.Context {
	if requestid.From(ctx) != "" {
		return ctx
	}
	if request := s.Bus.Request(id); request != "" {
		return requestid.With(ctx, request)
	}
	return ctx
}

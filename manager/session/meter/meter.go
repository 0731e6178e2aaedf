// Package meter counts the sessions of a manager by their results.
package meter

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
)

// reasonsOfEnds are the values of the label reason.
var reasonsOfEnds = []session.TerminationReason{
	session.TerminationReasonUserRequested, session.TerminationReasonCompleted, session.TerminationReasonFailed,
	session.TerminationReasonOutOfMemory, session.TerminationReasonDiskExceeded, session.TerminationReasonImagePullFailed,
	session.TerminationReasonStartFailed, session.TerminationReasonDeadlineExceeded, session.TerminationReasonAgentLost,
	session.TerminationReasonKernelLost, session.TerminationReasonShutdown, session.TerminationReasonDependencyFailed,
	session.TerminationReasonPreempted, session.TerminationReasonDrained, session.TerminationReasonIdle,
	session.TerminationReasonLifetime, session.TerminationReasonPendingTimeout, session.TerminationReasonBudget,
}

// Meter has the metrics of sessions.
type Meter struct {
	Created prometheus.Counter
	Start   prometheus.Histogram
	Ended   *prometheus.CounterVec
	Failed  prometheus.Counter
	Logs    prometheus.Gauge
}

// New registers the metrics; nil: none are registered.
func New(to prometheus.Registerer) Meter {
	f := promauto.With(to)
	m := Meter{
		Created: f.NewCounter(prometheus.CounterOpts{Name: "berth_sessions_created_total", Help: "Sessions created through this manager."}),
		Start: f.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_session_start_seconds", Help: "Time from the creation of a session until it runs for the first time, including the wait for capacity.",
			Buckets: []float64{.5, 1, 2, 5, 15, 60, 300, 1800, 7200, 43200},
		}),
		Ended:  f.NewCounterVec(prometheus.CounterOpts{Name: "berth_sessions_ended_total", Help: "Sessions that ended, by final status and reason."}, []string{"status", "reason"}),
		Failed: f.NewCounter(prometheus.CounterOpts{Name: "berth_session_failed_starts_total", Help: "Attempts to start a session that failed and are repeated."}),
		Logs:   f.NewGauge(prometheus.GaugeOpts{Name: "berth_log_streams", Help: "Logs of containers that are read through this manager now."}),
	}
	for _, reason := range reasonsOfEnds {
		for _, status := range lifecycle.All {
			if status.Final() {
				m.Ended.WithLabelValues(string(status), string(reason)).Add(0)
			}
		}
	}
	return m
}

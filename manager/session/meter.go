package session

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

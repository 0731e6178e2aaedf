package opsserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// watchEvery is the interval of the checks. A shorter failure can stay unnoticed.
	watchEvery = 3 * time.Second
	// beginTime is how long a check can fail after the start before it is logged, because managers
	// are still being elected and nodes still connect.
	beginTime = 15 * time.Second
)

// Watcher runs the checks of one role at intervals. It logs one line when a check begins to fail
// and one when it works again, and exports a metric.
type Watcher struct {
	checks []Check
	log    *slog.Logger
	every  time.Duration
	up     *prometheus.GaugeVec
	states []state
}

// state is the state of one check.
type state struct {
	worked bool      // it has worked since the start
	since  time.Time // start of the outage; zero while it works
	said   bool      // the outage was logged
	times  int       // number of logged outages
}

// NewWatcher returns a watcher of a role, whose metrics it registers; to may be nil.
func NewWatcher(role string, checks []Check, to prometheus.Registerer, log *slog.Logger) *Watcher {
	up := promauto.With(to).NewGaugeVec(prometheus.GaugeOpts{
		Name: "berth_dependency_up", Help: "1 while a dependency of a role works, else 0.",
		ConstLabels: prometheus.Labels{"role": role},
	}, []string{"dependency"})
	return &Watcher{checks: checks, log: log, every: watchEvery, up: up, states: make([]state, len(checks))}
}

// Run runs the checks until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	begun := time.Now()
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		w.checkAll(ctx, begun)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// checkAll runs every check once.
func (w *Watcher) checkAll(ctx context.Context, begun time.Time) {
	var all sync.WaitGroup
	for i, c := range w.checks {
		all.Go(func() {
			at := time.Now()
			err := probe(ctx, c)
			if ctx.Err() == nil {
				w.record(i, at, at.Sub(begun) < beginTime, err)
			}
		})
	}
	all.Wait()
}

// record stores the result of a check. checkAll never runs concurrently with itself.
func (w *Watcher) record(i int, at time.Time, young bool, err error) {
	name, s := w.checks[i].Name, &w.states[i]
	if err == nil {
		w.up.WithLabelValues(name).Set(1)
		if s.said {
			w.log.Info("dependency is back", "dependency", name, "away_seconds", time.Since(s.since).Round(100*time.Millisecond).Seconds())
		}
		s.worked, s.said, s.since = true, false, time.Time{}
		return
	}
	w.up.WithLabelValues(name).Set(0)
	if s.since.IsZero() {
		s.since = at
	}
	if !s.said && (s.worked || !young) {
		s.said = true
		s.times++ // each outage is logged, no matter how soon it follows the previous one
		w.log.Warn("dependency is unavailable", "dependency", name, "outage", s.times, "error", err)
	}
}

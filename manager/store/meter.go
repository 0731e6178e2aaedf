package store

import (
	"context"
	stdsql "database/sql"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// names of the lanes in metrics.
var names = [lanes]string{Requests: "requests", Streams: "streams", Audit: "trail", Leader: "leader"}

// meter measures the statements of one manager.
type meter struct {
	seconds [lanes]prometheus.Observer
	failed  [lanes]prometheus.Counter
}

func newMeter(to prometheus.Registerer) *meter {
	f := promauto.With(to)
	seconds := f.NewHistogramVec(prometheus.HistogramOpts{
		Name: "berth_postgres_statement_seconds", Help: "Time until PostgreSQL answered a statement, including the wait for a connection.",
		Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
	}, []string{"pool"})
	failed := f.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_postgres_errors_total", Help: "Statements without an answer: PostgreSQL was unreachable or too slow, or no connection was free.",
	}, []string{"pool"})
	m := &meter{}
	for l, name := range names {
		m.seconds[l], m.failed[l] = seconds.WithLabelValues(name), failed.WithLabelValues(name)
	}
	return m
}

// done counts a statement that began at a time.
func (m *meter) done(ctx context.Context, begun time.Time, err error) {
	l := laneOf(ctx)
	m.seconds[l].Observe(time.Since(begun).Seconds())
	if err != nil && ctx.Err() == nil && (away(err) || errors.Is(err, context.DeadlineExceeded)) {
		m.failed[l].Inc()
	}
}

// pool statistics of database/sql, by lane.
var (
	poolConnections = prometheus.NewDesc("berth_postgres_connections", "Open connections to PostgreSQL.", []string{"pool", "state"}, nil)
	poolMost        = prometheus.NewDesc("berth_postgres_connections_max", "Largest number of connections in the pool.", []string{"pool"}, nil)
	poolWaits       = prometheus.NewDesc("berth_postgres_connection_waits_total", "Statements that waited for a free connection.", []string{"pool"}, nil)
	poolWaited      = prometheus.NewDesc("berth_postgres_connection_wait_seconds_total", "Time that statements waited for a free connection.", []string{"pool"}, nil)
)

// Describe implements prometheus.Collector.
func (p Pools) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolConnections, poolMost, poolWaits, poolWaited} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It reads the counters of database/sql, and sends nothing
// to PostgreSQL.
func (p Pools) Collect(out chan<- prometheus.Metric) {
	for l, db := range p {
		collectPool(out, names[l], db.Stats())
	}
}

func collectPool(out chan<- prometheus.Metric, name string, s stdsql.DBStats) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{name}, labels...)...)
	}
	gauge(poolConnections, float64(s.InUse), "in_use")
	gauge(poolConnections, float64(s.Idle), "idle")
	gauge(poolMost, float64(s.MaxOpenConnections))
	out <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(s.WaitCount), name)
	out <- prometheus.MustNewConstMetric(poolWaited, prometheus.CounterValue, s.WaitDuration.Seconds(), name)
}

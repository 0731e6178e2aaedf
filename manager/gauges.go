package manager

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/manager/store"
)

const (
	// countEvery is the maximum age of metrics that are read from rows, however many clients
	// scrape.
	countEvery = 5 * time.Second
	// countTimeout limits a count. A scrape waits at most scrapeWait for it, and otherwise
	// returns the previous values.
	countTimeout = 10 * time.Second
	scrapeWait   = time.Second
)

// rowGauges reads metrics from rows when a client scrapes, one count at a time, without making
// scrapes wait for the database.
type rowGauges struct {
	count func(context.Context) error
	read  prometheus.Gauge

	mu      sync.Mutex
	at      time.Time
	running chan struct{} // closed when the running count has ended; nil if none runs
}

func newRowGauges(r prometheus.Registerer, count func(context.Context) error) *rowGauges {
	return &rowGauges{count: count, read: promauto.With(r).NewGauge(prometheus.GaugeOpts{
		Name: "berth_rows_read_timestamp_seconds",
		Help: "When the metrics that come from the database were read; it stays behind while PostgreSQL does not answer.",
	})}
}

// refresh counts unless the values are recent. It returns after scrapeWait at the latest.
func (g *rowGauges) refresh() {
	g.mu.Lock()
	if time.Since(g.at) < countEvery {
		g.mu.Unlock()
		return
	}
	if g.running == nil {
		g.running = make(chan struct{})
		go g.run(g.running)
	}
	running := g.running
	g.mu.Unlock()
	wait := time.NewTimer(scrapeWait)
	defer wait.Stop()
	select {
	case <-running:
	case <-wait.C:
	}
}

// run counts once. It can outlive the scrape that started it, limited by countTimeout.
func (g *rowGauges) run(done chan struct{}) {
	ctx, cancel := context.WithTimeout(store.On(context.Background(), store.Leader), countTimeout)
	defer cancel()
	err := g.count(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = nil
	if err == nil {
		g.at = time.Now()
		g.read.Set(float64(g.at.Unix()))
	}
	close(done)
}

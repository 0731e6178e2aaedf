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
	// countEvery is how old the metrics that are read from rows may be, however many scrape.
	countEvery = 5 * time.Second
	// countTimeout bounds a count; a scrape waits no longer than scrapeWait for it,
	// and shows the last counts then.
	countTimeout = 10 * time.Second
	scrapeWait   = time.Second
)

// rowGauges keep scrapes from waiting for the database. The metrics that are read
// from rows are read when someone scrapes, by one at a time.
type rowGauges struct {
	count func(context.Context) error
	read  prometheus.Gauge

	mu      sync.Mutex
	at      time.Time
	running chan struct{} // closed when the count that runs has ended; nil without one
}

func newRowGauges(r prometheus.Registerer, count func(context.Context) error) *rowGauges {
	return &rowGauges{count: count, read: promauto.With(r).NewGauge(prometheus.GaugeOpts{
		Name: "berth_rows_read_timestamp_seconds",
		Help: "When the metrics that come from the database were read; it stays behind while PostgreSQL does not answer.",
	})}
}

// refresh counts unless the counts are new. It returns after scrapeWait at the
// latest, whatever the database does.
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

// run counts once. It outlives the scrape that began it, but not countTimeout.
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

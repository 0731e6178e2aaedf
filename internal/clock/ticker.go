package clock

import (
	"hash/fnv"
	"sync"
	"time"
)

// Ticker sends the time at intervals, as time.Ticker does, with a phase of its own. The loops of a
// manager start at the same moment. With time.Ticker, all of them would use the database at the
// same moment from then on, each on a connection of its own, and a connection is a process of
// PostgreSQL with some MiB.
type Ticker struct {
	C <-chan time.Time

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// NewTicker returns a ticker of the named loop. The first tick comes within every.
func NewTicker(loop string, every time.Duration) *Ticker {
	c := make(chan time.Time, 1)
	t := &Ticker{C: c}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(phase(loop, every), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.stopped {
			return
		}
		select {
		case c <- time.Now():
		default: // the loop has not taken the last tick
		}
		t.timer.Reset(every)
	})
	return t
}

// Stop ends the ticks.
func (t *Ticker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}

// phase returns the time until the first tick of a loop: more than 0, at most every.
func phase(loop string, every time.Duration) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(loop))
	return every - time.Duration(float64(every)*float64(h.Sum32())/(1<<32))
}

package cluster

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Egress is the way out of the registry. It counts the bytes of parts of images, and can break.
type Egress struct {
	registry http.Handler
	sent     atomic.Int64
	limit    atomic.Int64 // of sent, from which on the registry is down; 0: none
	down     atomic.Bool

	mu   sync.Mutex
	rate float64   // bytes per second; 0: unlimited
	free time.Time // when the bytes that were sent have passed
}

// Limit limits the bytes that the registry sends in a second, to all agents together; 0: no limit.
func (e *Egress) Limit(rate float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rate = rate
}

// pass waits until n bytes have passed.
func (e *Egress) pass(n int) {
	e.mu.Lock()
	if e.rate == 0 {
		e.mu.Unlock()
		return
	}
	if now := time.Now(); e.free.Before(now) {
		e.free = now
	}
	e.free = e.free.Add(time.Duration(float64(n) / e.rate * float64(time.Second)))
	until := e.free
	e.mu.Unlock()
	time.Sleep(time.Until(until))
}

// Sent returns the bytes of manifests and layers that were sent to agents so far.
func (e *Egress) Sent() int64 { return e.sent.Load() }

// Down breaks the registry, or repairs it.
func (e *Egress) Down(down bool) {
	e.limit.Store(0)
	e.down.Store(down)
}

// DownAfter breaks the registry after it has sent n more bytes, also in the middle of a layer.
func (e *Egress) DownAfter(n int64) { e.limit.Store(e.sent.Load() + n) }

// ServeHTTP implements http.Handler.
func (e *Egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.down.Load() {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") && !strings.Contains(r.URL.Path, "/manifests/") ||
		!strings.Contains(r.UserAgent(), "containerd") {
		e.registry.ServeHTTP(w, r)
		return
	}
	e.registry.ServeHTTP(&egressWriter{w, e}, r)
}

type egressWriter struct {
	http.ResponseWriter
	e *Egress
}

// Write implements http.ResponseWriter.
func (w *egressWriter) Write(b []byte) (int, error) {
	sent := w.e.sent.Add(int64(len(b)))
	if limit := w.e.limit.Load(); limit > 0 && sent > limit {
		w.e.down.Store(true)
		panic(http.ErrAbortHandler)
	}
	w.e.pass(len(b))
	return w.ResponseWriter.Write(b)
}

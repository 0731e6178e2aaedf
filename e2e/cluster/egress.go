package cluster

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// Egress is the way out of the registry. It counts the bytes of parts of images, and can break.
type Egress struct {
	registry http.Handler
	sent     atomic.Int64
	limit    atomic.Int64 // of sent, from which on the registry is down; 0: none
	down     atomic.Bool
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
	return w.ResponseWriter.Write(b)
}

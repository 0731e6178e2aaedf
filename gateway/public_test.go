package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestRate(t *testing.T) {
	var r rate
	now := time.Now()
	count := func() (n int) {
		for r.take(now, 10, 50) {
			n++
		}
		return n
	}
	if n := count(); n != 50 {
		t.Errorf("%d at once", n)
	}
	now = now.Add(time.Second)
	if n := count(); n != 10 {
		t.Errorf("%d after a second", n)
	}
	now = now.Add(time.Hour)
	if n := count(); n != 50 {
		t.Errorf("%d after a pause", n)
	}
}

// A visitor without a login is limited by address, and does not count as activity in the session,
// although the app is the same.
func TestVisitorsOfAPublicApp(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "hello") }))
	var counted atomic.Int64
	w.g.visit = func(context.Context, uuid.UUID, string) (moved, leave func()) {
		counted.Add(1)
		return func() {}, func() {}
	}
	public := &entry{public: true, viewer: w.e.viewer, target: w.e.target, ctx: w.e.ctx, end: w.e.end, from: w.e.from}
	public.setUpstream(w.e.up)
	visit := func() int {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = w.host
		at, _, _ := w.g.locate(r)
		w.g.serveVisitor(rec, r, at, public)
		return rec.Code
	}
	if got := visit(); got != http.StatusOK || counted.Load() != 0 {
		t.Errorf("a visitor: %d, counted %d times", got, counted.Load())
	}
	if resp := w.request(t, http.MethodGet, "/", nil, nil); resp.StatusCode != http.StatusOK || counted.Load() != 1 {
		t.Errorf("a user: %s, counted %d times", resp.Status, counted.Load())
	}
	last := http.StatusOK
	for range 2 * visitsAtOnce {
		last = visit()
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after %d requests at once: %d", 2*visitsAtOnce, last)
	}
}

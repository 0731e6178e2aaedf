// Package sessionfile serves the files in the containers of running sessions over HTTP: listings,
// downloads, uploads and changes. The runner in the container does the work as the container's user
// (package agent/runner/files); this package checks permissions, writes the audit log, and limits
// concurrent requests. The manager registers its routes beside those of package attach.
package sessionfile

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/store"
)

// Limits of one person at one manager. Every request that runs has a process in a container.
const (
	maxTransfers = 8
	maxCalls     = 4 // listings and changes; further ones wait
	callTime     = 30 * time.Second
	// stallTime is how long neither the client nor the container can make progress. A busy
	// network file system can take tens of seconds for one write.
	stallTime = 2 * time.Minute
	maxBody   = 1 << 20 // of a change
	// drainBytes of the body of a refused upload are read, because a client that is still
	// sending does not see the answer.
	drainBytes = 32 << 20
)

// Find returns the kernel of a request that the viewer can enter, and its agent.
type Find func(r *http.Request) (*ent.Kernel, agentpb.AgentClient, error)

// Revocations ends requests whose credential was revoked.
type Revocations interface {
	Watch(ctx context.Context, v *viewer.Viewer) <-chan struct{}
}

// Metrics of a manager. NewMetrics creates them.
type Metrics struct {
	open  prometheus.Gauge
	bytes *prometheus.CounterVec
}

// Directions of bytes.
const (
	uploaded   = "upload"
	downloaded = "download"
)

// NewMetrics registers the metrics that Handler needs.
func NewMetrics(to prometheus.Registerer) *Metrics {
	m := &Metrics{
		open: promauto.With(to).NewGauge(prometheus.GaugeOpts{
			Name: "berth_session_file_requests", Help: "Requests for files in sessions that run at this manager."}),
		bytes: promauto.With(to).NewCounterVec(prometheus.CounterOpts{
			Name: "berth_session_file_bytes_total", Help: "Bytes of files of sessions that were sent through this manager."}, []string{"direction"}),
	}
	for _, d := range []string{uploaded, downloaded} {
		m.bytes.WithLabelValues(d)
	}
	return m
}

// Handler serves the routes below /sessions/{id}/files.
type Handler struct {
	Find    Find
	Revoked Revocations
	Idle    *idle.Service
	Audit   *audit.Service
	Metrics *Metrics
	Logger  *slog.Logger

	pool      pool
	transfers store.Limit
	calls     store.Limit
}

// Register adds the routes to mux.
func (h *Handler) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /sessions/{id}/files", h.call("listSessionFiles", (*fileRequest).list))
	mux.HandleFunc("POST /sessions/{id}/files/directories", h.call("makeSessionDirectories", change(directories)))
	mux.HandleFunc("POST /sessions/{id}/files/moves", h.call("moveSessionFiles", change(moves)))
	mux.HandleFunc("POST /sessions/{id}/files/deletions", h.call("deleteSessionFiles", change(deletions)))
	mux.HandleFunc("GET /sessions/{id}/files/content", h.transfer("readSessionFile", (*fileRequest).content))
	mux.HandleFunc("PUT /sessions/{id}/files/content", h.transfer("writeSessionFile", (*fileRequest).receive))
	mux.HandleFunc("GET /sessions/{id}/files/archive", h.transfer("readSessionFile", (*fileRequest).archive))
	mux.HandleFunc("GET /sessions/{id}/files/upload", h.call("writeSessionFile", (*fileRequest).partial))
	mux.HandleFunc("DELETE /sessions/{id}/files/upload", h.call("writeSessionFile", (*fileRequest).discard))
}

// fileRequest is one request of a person to a kernel.
type fileRequest struct {
	h      *Handler
	w      http.ResponseWriter
	r      *http.Request // with a context that ends when the right ends
	kernel *ent.Kernel
	rpc    agentpb.AgentClient
	entry  audit.Entry
	used   *idle.Connection
	stall  *time.Timer
	begun  bool // the answer has begun, so an error can only break the connection
}

type action func(v *fileRequest) error

// call serves short requests. Those beyond the limit of a person wait.
func (h *Handler) call(name string, do action) http.HandlerFunc {
	return h.serve(name, callTime, func(ctx context.Context, who uuid.UUID) (func(), error) {
		leave, err := h.calls.Take(ctx, who, maxCalls)
		if err != nil {
			err = problem.Exhausted("%d of your requests for files of sessions are running at this manager; try again", maxCalls).
				WithLimit(strconv.Itoa(maxCalls)).RetryAfter(time.Second)
		}
		return leave, err
	}, do)
}

// transfer serves requests that move the content of files.
func (h *Handler) transfer(name string, do action) http.HandlerFunc {
	return h.serve(name, 0, func(_ context.Context, who uuid.UUID) (func(), error) {
		leave, ok := h.transfers.Try(who, maxTransfers)
		if !ok {
			return nil, problem.Exhausted("you are transferring %d files of sessions at this manager; wait until one is complete", maxTransfers).
				WithLimit(strconv.Itoa(maxTransfers)).RetryAfter(time.Second)
		}
		return leave, nil
	}, do)
}

// serve runs an action for a user who can enter the session.
func (h *Handler) serve(name string, timeout time.Duration, place func(context.Context, uuid.UUID) (func(), error), do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		if timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, timeout)
		}
		defer cancel()
		v := &fileRequest{h: h, w: w, r: r.WithContext(ctx), entry: audit.Entry{Action: name, Entity: access.Session}}
		v.entry.ID, _ = uuid.Parse(r.PathValue("id"))
		err := v.enter()
		if err != nil {
			h.Audit.Denied(ctx, v.entry, err)
			problem.WriteHTTP(w, r, err)
			return
		}
		leave, err := place(ctx, viewer.From(ctx).Person())
		if err != nil {
			problem.WriteHTTP(w, r, err)
			return
		}
		defer leave()
		h.Metrics.open.Inc()
		defer h.Metrics.open.Dec()
		v.used = h.Idle.Enter(ctx, v.kernel.SessionID, false)
		defer v.used.Leave()
		stop := v.watch(cancel)
		defer stop()
		v.finish(do(v))
	}
}

// enter finds the kernel.
func (v *fileRequest) enter() (err error) {
	v.kernel, v.rpc, err = v.h.Find(v.r)
	return err
}

// watch ends the request when the right ends, or when nothing moves.
func (v *fileRequest) watch(end context.CancelFunc) (stop func()) {
	ctx := v.r.Context()
	cut := func() {
		// A client that neither sends nor reads must not block the request.
		control := http.NewResponseController(v.w)
		_ = control.SetReadDeadline(time.Now())
		_ = control.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		end()
	}
	v.stall = time.AfterFunc(stallTime, cut)
	gone := v.h.Revoked.Watch(ctx, viewer.From(ctx))
	go func() {
		select {
		case <-ctx.Done():
		case <-gone:
			cut()
		}
	}()
	return func() { v.stall.Stop() }
}

// moved records that data has moved.
func (v *fileRequest) moved(direction string, n int) {
	v.used.Moved()
	v.stall.Reset(stallTime)
	v.h.Metrics.bytes.WithLabelValues(direction).Add(float64(n))
}

// finish answers with an error. An answer that has begun is broken off, so that a part of a file never
// looks complete.
func (v *fileRequest) finish(err error) {
	switch {
	case err == nil:
	case v.begun:
		if v.r.Context().Err() == nil {
			v.h.Logger.WarnContext(v.r.Context(), "send files of a session", "session", v.entry.ID, "error", err)
		}
		panic(http.ErrAbortHandler)
	default:
		if !problem.WriteHTTP(v.w, v.r, err) {
			v.h.Logger.ErrorContext(v.r.Context(), "serve files of a session", "session", v.entry.ID, "error", err)
		}
	}
}

// answer writes JSON.
func (v *fileRequest) answer(body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_, err = v.w.Write(b)
	v.begun = true
	return err
}

// record writes a row of the audit log, without which nothing is read.
func (v *fileRequest) record(message string) error {
	e := v.entry
	e.Message = message
	if err := v.h.Audit.Require(v.r.Context(), e); err != nil {
		return problem.Unavailable("the audit log cannot be written").RetryAfter(time.Second).Because(err)
	}
	return nil
}

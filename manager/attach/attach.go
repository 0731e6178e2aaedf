// Package attach connects users to sessions over WebSockets: terminals and commands, and raw
// connections to loopback ports. Package sessionfile uses its permission check for files.
package attach

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/permit"
	msession "github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/session/logs"
	"github.com/berthhq/berth/manager/store"
)

// Revocations ends connections whose credential was revoked.
type Revocations interface {
	Watch(ctx context.Context, v *viewer.Viewer) <-chan struct{}
}

// Handler serves the routes below /sessions/{id}/.
type Handler struct {
	Client   *ent.Client
	Sessions *msession.Service
	Streams  func(agent string) (portstream.Opener, error)
	Idle     *idle.Service // records connections and traffic
	Revoked  Revocations
	Audit    *audit.Service
	Open     *prometheus.GaugeVec // open connections by kind; see NewOpen
	Logger   *slog.Logger

	places store.Limit // of terminals and ports
}

// maxOpen bounds the terminals and forwarded connections of one person at one manager: a page opens
// a dozen connections, and an editor some terminals.
const maxOpen = 200

// place counts one more connection of a person, until the returned function is called.
func (h *Handler) place(ctx context.Context) (giveBack func(), err error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		return func() {}, nil
	}
	giveBack, ok := h.places.Try(v.Person(), maxOpen)
	if !ok {
		return nil, problem.Exhausted("you have %d terminals and forwarded connections open at this manager; close some", maxOpen).
			WithLimit(strconv.Itoa(maxOpen))
	}
	return giveBack, nil
}

// NewOpen registers the gauge that Handler needs.
func NewOpen(to prometheus.Registerer) *prometheus.GaugeVec {
	open := promauto.With(to).NewGaugeVec(prometheus.GaugeOpts{
		Name: "berth_session_connections", Help: "Terminals, commands and ports of sessions that are open through this manager.",
	}, []string{"kind"})
	for _, kind := range []string{terminals, ports} {
		open.WithLabelValues(kind).Set(0)
	}
	return open
}

// Kinds of open connections.
const (
	terminals = "terminal"
	ports     = "port"
)

// Register adds the routes to mux.
func (h *Handler) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /sessions/{id}/terminal", h.terminal)
	mux.HandleFunc("GET /sessions/{id}/ports/{port}", h.port)
	mux.HandleFunc("GET /sessions/{id}/log", h.log)
}

// target is find, plus an entry in the audit log for each access and each denial.
func (h *Handler) target(r *http.Request, running bool) (*ent.Kernel, agentpb.AgentClient, error) {
	k, rpc, err := h.find(r, running)
	e := audit.Entry{Action: "enterSession", Entity: access.Session}
	if !running {
		e.Action = "readSessionLog"
	}
	e.ID, _ = uuid.Parse(r.PathValue("id"))
	switch {
	case err != nil:
		h.Audit.Denied(r.Context(), e, err)
	case running:
		if err = h.Audit.Require(r.Context(), e); err != nil { // no access without an entry in the audit log
			err = problem.Unavailable("the audit log cannot be written").RetryAfter(time.Second).Because(err)
		}
	}
	return k, rpc, err
}

// Find returns the kernel of a request that the viewer can enter: the one that the request names, or
// the session's main kernel; and its agent.
func (h *Handler) Find(r *http.Request) (*ent.Kernel, agentpb.AgentClient, error) {
	return h.find(r, true)
}

// find returns the kernel of a request: the one that it names, or the session's main kernel.
// With running, it returns the kernel's agent too. Read access to a session does not suffice.
func (h *Handler) find(r *http.Request, running bool) (*ent.Kernel, agentpb.AgentClient, error) {
	ctx := r.Context()
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		return nil, nil, problem.Unauthenticated("log in first")
	}
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return nil, nil, problem.NotFound("session").WithField("id")
	}
	s, err := h.Client.Session.Query().Where(session.ID(id)).Only(ctx)
	if err != nil {
		return nil, nil, permit.Missing(err, "session", "id")
	}
	if running {
		if err := permit.To(ctx, access.Enter, s); err != nil {
			return nil, nil, err
		}
	}
	if running && s.Status != lifecycle.Running {
		return nil, nil, problem.Precondition("session %s is %s, not running", s.Name, s.Status)
	}
	q := s.QueryKernels()
	if name := r.URL.Query().Get("kernel"); name != "" {
		kid, err := uuid.Parse(name)
		if err != nil {
			return nil, nil, problem.NotFound("kernel").WithField("kernel")
		}
		q.Where(kernel.ID(kid))
	} else {
		q.Where(kernel.RoleEQ(kernel.RoleMain))
	}
	k, err := q.FirstID(ctx)
	if err != nil {
		return nil, nil, permit.Missing(err, "kernel", "kernel")
	}
	if !running {
		row, err := h.Client.Kernel.Get(ctx, k)
		return row, nil, err
	}
	return h.Sessions.Reach(ctx, k)
}

// accept upgrades a request to a WebSocket, and rejects browsers of other origins. The
// returned context ends when the credential is revoked.
func (h *Handler) accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, context.Context, context.CancelFunc, error) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	c.SetReadLimit(1 << 20)
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		select {
		case <-ctx.Done():
		case <-h.Revoked.Watch(ctx, viewer.From(ctx)):
			// Close waits for the other side, which must not send input meanwhile.
			time.AfterFunc(200*time.Millisecond, cancel)
			_ = c.Close(websocket.StatusPolicyViolation, "your login has ended")
			cancel()
		}
	}()
	go keepAlive(ctx, cancel, c)
	return c, ctx, cancel, nil
}

// keepAlive sends pings, so that proxies do not close an idle connection. It ends the
// connection of a client that does not answer.
func keepAlive(ctx context.Context, gone context.CancelFunc, c *websocket.Conn) {
	tick := time.NewTicker(20 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			ping, cancel := context.WithTimeout(ctx, 20*time.Second)
			err := c.Ping(ping)
			cancel()
			if err != nil {
				gone()
				return
			}
		}
	}
}

// entered is an open WebSocket to a running kernel.
type entered struct {
	conn   *websocket.Conn
	cancel context.CancelFunc // ends both directions
	kernel *ent.Kernel
	rpc    agentpb.AgentClient
	visit  *idle.Connection
}

// enter opens a WebSocket to a running kernel and runs do with it. The session counts as used
// while the WebSocket is open and stays true, or while data moves.
func (h *Handler) enter(w http.ResponseWriter, r *http.Request, stays bool, do func(ctx context.Context, e entered)) {
	giveBack, err := h.place(r.Context())
	if err != nil {
		problem.WriteHTTP(w, r, err)
		return
	}
	defer giveBack()
	k, rpc, err := h.target(r, true)
	if err != nil {
		problem.WriteHTTP(w, r, err)
		return
	}
	c, ctx, cancel, err := h.accept(w, r)
	if err != nil {
		return
	}
	defer cancel()
	defer c.CloseNow()
	kind := ports
	if stays {
		kind = terminals
	}
	h.Open.WithLabelValues(kind).Inc()
	defer h.Open.WithLabelValues(kind).Dec()
	visit := h.Idle.Enter(ctx, k.SessionID, stays)
	defer visit.Leave()
	do(ctx, entered{c, cancel, k, rpc, visit})
}

// port connects a WebSocket with a loopback port of a kernel.
func (h *Handler) port(w http.ResponseWriter, r *http.Request) {
	port, err := strconv.ParseUint(r.PathValue("port"), 10, 16)
	if err != nil || port == 0 {
		problem.WriteHTTP(w, r, problem.Invalid("port", "must be a number from 1 to 65535").WithLimit("1..65535"))
		return
	}
	h.enter(w, r, false, func(ctx context.Context, e entered) {
		to, err := h.dial(ctx, e.kernel, int(port))
		if err != nil {
			_ = e.conn.Close(websocket.StatusInternalError, reason(err))
			return
		}
		defer to.Close()
		join(ctx, e, to)
	})
}

func (h *Handler) dial(ctx context.Context, k *ent.Kernel, port int) (*portstream.Conn, error) {
	name, err := h.Sessions.AgentOf(ctx, k)
	if err != nil {
		return nil, err
	}
	agent, err := h.Streams(name)
	if err != nil {
		return nil, err
	}
	return portstream.Dial(ctx, agent, k.ID, port)
}

// join copies data in both directions until either side ends.
func join(ctx context.Context, e entered, to *portstream.Conn) {
	go func() {
		defer e.cancel()
		for {
			_, data, err := e.conn.Read(ctx)
			if err != nil {
				_ = to.CloseWrite()
				return
			}
			e.visit.Moved()
			if _, err := to.Write(data); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := to.Read(buf)
		if n > 0 {
			e.visit.Moved()
			if e.conn.Write(ctx, websocket.MessageBinary, buf[:n]) != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			_ = e.conn.Close(websocket.StatusNormalClosure, "")
			return
		}
		if err != nil {
			_ = e.conn.Close(websocket.StatusInternalError, reason(err))
			return
		}
	}
}

// log sends the stored log as a file.
func (h *Handler) log(w http.ResponseWriter, r *http.Request) {
	k, _, err := h.target(r, false)
	if err != nil {
		problem.WriteHTTP(w, r, err)
		return
	}
	log, err := h.Sessions.Logs(r.Context(), k.ID, logs.Options{})
	if err != nil {
		problem.WriteHTTP(w, r, err)
		return
	}
	defer log.Close()
	text, _, _, err := log.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		problem.WriteHTTP(w, r, err) // no data has been sent yet
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("id")+`.log"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	for ; ; text, _, _, err = log.Next() {
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			// Aborted, so that a partial log does not look complete.
			h.Logger.WarnContext(r.Context(), "send log", "kernel", k.ID, "error", err)
			panic(http.ErrAbortHandler)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// reason returns an error's text, truncated for a close frame.
func reason(err error) string {
	p, _ := problem.From(err)
	if len(p.Message) > 100 {
		return p.Message[:100]
	}
	return p.Message
}

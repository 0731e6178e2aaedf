package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/app"
)

const (
	startTime   = 3 * time.Minute        // until an app listens; large notebooks take half a minute
	sessionTime = 10 * time.Minute       // until a session runs; then the wait page starts again
	pageHold    = 300 * time.Millisecond // before a person sees the wait page
	callHold    = time.Minute            // before a program gets an error
	awaitTime   = 20 * time.Second       // limit of one request of the wait page
	failedFor   = 3 * time.Second        // how long a failure is shown before the next request starts the app again
	firstLook   = 20 * time.Millisecond
	lastLook    = 250 * time.Millisecond
	stateEvery  = time.Second
	tailBytes   = 4 << 10
)

// upstream is the port of a kernel that an app listens on.
type upstream struct {
	*app.Container
	session uuid.UUID
	app     string
	port    int
	public  bool // its traffic does not count as activity
	prefix  bool // the app itself knows the prefix of path mode
}

// host names the pool of connections to an app. Activity is recorded per app, and visitors without
// a login have another pool, because they do not count.
func (u *upstream) host() string {
	kind := "app."
	if u.public {
		kind = "public."
	}
	return kind + u.app + "." + u.Kernel.String() + ":" + strconv.Itoa(u.port)
}

// failure is the reason why an app cannot be used, for people.
type failure struct {
	Title, Reason string
	Log           string // the last output of the program
	gone          bool   // a retry cannot help
}

func (f *failure) Error() string { return f.Title + ": " + f.Reason }

// start is the start of an app, for which all requests for the app wait.
type start struct {
	done chan struct{}
	up   *upstream
	err  error
	at   time.Time // time of the end

	mu      sync.Mutex
	stage   string
	changed chan struct{} // closed when the stage changes
}

type starts struct {
	mu sync.Mutex
	m  map[string]*start
}

func (s *start) setStage(stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stage != s.stage {
		s.stage = stage
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *start) currentStage() (stage string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stage, s.changed
}

func (s *start) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// sweep removes starts that have ended.
func (s *starts) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, x := range s.m {
		if x.over() && time.Since(x.at) > failedFor {
			delete(s.m, key)
		}
	}
}

// begin returns the start of an app that is in progress or has just failed, or begins one.
func (g *Gateway) begin(e *entry, at location) *start {
	key := at.target.Label()
	if e.public { // visitors get the error only if they lose access
		key += "|public"
	}
	g.starts.mu.Lock()
	defer g.starts.mu.Unlock()
	if x := g.starts.m[key]; x != nil && (!x.over() || x.err != nil && !denied(x.err) && time.Since(x.at) < failedFor) {
		return x
	}
	x := &start{done: make(chan struct{}), changed: make(chan struct{}), stage: "Looking for the app"}
	g.starts.m[key] = x
	g.mu.Lock()
	base := g.base
	g.mu.Unlock()
	g.serves.Go(func() {
		x.up, x.err = g.bring(base, e, at, x)
		x.at = time.Now()
		result := "ok"
		if x.err != nil {
			result = "failed"
		}
		g.meter.starts.WithLabelValues(result).Inc()
		close(x.done)
	})
	return x
}

// bring waits for the session, starts the app if necessary, and waits until it listens.
func (g *Gateway) bring(ctx context.Context, e *entry, at location, x *start) (*upstream, error) {
	place, err := g.running(ctx, e, x)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	x.setStage("Looking for the app")
	c, err := g.Apps.Reach(ctx, place.Target.Session, place.Kernel)
	if err != nil {
		return nil, err
	}
	d, err := g.Apps.Define(ctx, place)
	if err != nil {
		return nil, err
	}
	up := &upstream{Container: c, session: place.Target.Session, app: place.App, port: d.Port, prefix: d.KnowsPrefix()}
	err = g.try(ctx, up)
	if err == nil {
		return up, nil
	}
	if !portstream.Refused(err) {
		return nil, err
	}
	if !d.Startable() {
		return nil, &failure{Title: title(d), Reason: fmt.Sprintf("No program listens on port %d of the container. Start it in the session.", d.Port)}
	}
	x.setStage("Starting " + title(d))
	if _, err := g.Apps.Start(ctx, c.RPC, c.Kernel, d, at.prefix); err != nil {
		return nil, err
	}
	return up, g.listening(ctx, up, d)
}

func title(d app.Definition) string {
	if d.Title != "" {
		return d.Title
	}
	return d.Name
}

// listening waits until a started app listens, and fails if the app ends before.
func (g *Gateway) listening(ctx context.Context, up *upstream, d app.Definition) error {
	look, asked := firstLook, time.Now()
	for {
		err := g.try(ctx, up)
		if err == nil {
			return nil
		}
		if !portstream.Refused(err) && ctx.Err() == nil {
			return err
		}
		if time.Since(asked) > stateEvery {
			asked = time.Now()
			st, err := g.Apps.State(ctx, up.RPC, up.Kernel, d.Name)
			if err == nil && !st.Running {
				return g.failed(up, d, fmt.Sprintf("%s does not listen on port %d: %s.", d.Command[0], d.Port, st.Reason))
			}
		}
		select {
		case <-ctx.Done():
			return g.failed(up, d, fmt.Sprintf("%s did not listen on port %d within %s.", d.Command[0], d.Port, startTime))
		case <-time.After(look):
			look = min(look*3/2, lastLook)
		}
	}
}

func (g *Gateway) failed(up *upstream, d app.Definition, reason string) error {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	log, err := g.Apps.Tail(ctx, up.RPC, up.Kernel, d.Name, tailBytes)
	if err != nil {
		g.log.Warn("read the log of an app", "kernel", up.Kernel, "app", d.Name, "error", err)
	}
	return &failure{Title: title(d), Reason: reason, Log: log}
}

// try connects to the port once.
func (g *Gateway) try(ctx context.Context, up *upstream) error {
	c, err := portstream.Dial(ctx, up.Ports, up.Kernel, up.port)
	if err != nil {
		return err
	}
	return c.Close()
}

// stages are the texts for users about the start of a session.
var stages = map[lifecycle.Status]string{
	lifecycle.Pending: "Waiting for capacity", lifecycle.Scheduled: "Preparing the machine", lifecycle.Preparing: "Pulling the image",
	lifecycle.Prepared: "Creating the container", lifecycle.Creating: "Creating the container",
}

// running waits until the session runs.
func (g *Gateway) running(ctx context.Context, e *entry, x *start) (*app.Place, error) {
	end := time.Now().Add(sessionTime)
	for {
		place, err := g.admitted(ctx, e)
		switch {
		case err != nil:
			return nil, err
		case place.Running():
			return place, nil
		case place.Over():
			return nil, &failure{Title: place.Session.Name, Reason: "The session has ended.", gone: true}
		}
		stage, ok := stages[place.Session.Status]
		if !ok {
			return nil, &failure{Title: place.Session.Name, Reason: fmt.Sprintf("The session is %s.", place.Session.Status), gone: true}
		}
		if x.setStage(stage); time.Now().After(end) {
			return nil, problem.Precondition("session %s does not run yet", place.Session.Name)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lastLook * 2):
		}
	}
}

// pass forwards a request to the app, after it has been started.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, at location, e *entry) {
	if up := e.upstream(); up != nil {
		g.forward(w, r, at, e, up)
		return
	}
	x := g.begin(e, at)
	hold := callHold
	if navigates(r) {
		hold = pageHold
	}
	select {
	case <-x.done:
	case <-r.Context().Done():
		return
	case <-time.After(hold):
		g.waiting(w, r, x)
		return
	}
	if x.err != nil {
		g.unusable(w, r, x.err)
		return
	}
	g.forward(w, r, at, e, e.setUpstream(x.up))
}

// conn records the activity of a session.
type conn struct {
	net.Conn
	moved func()
	leave func()
	once  sync.Once
}

func (c *conn) Read(b []byte) (int, error)  { c.moved(); return c.Conn.Read(b) }
func (c *conn) Write(b []byte) (int, error) { c.moved(); return c.Conn.Write(b) }

// CloseWrite ends the data to the app, which can still answer.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *conn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// dial opens a connection for the transport of the proxy.
func (g *Gateway) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	up, _ := ctx.Value(upstreamKey{}).(*upstream)
	if up == nil {
		return nil, fmt.Errorf("dial without an app: %w", net.ErrClosed)
	}
	g.mu.Lock()
	base := g.base
	g.mu.Unlock()
	c, err := portstream.Dial(base, up.Ports, up.Kernel, up.port)
	if err != nil {
		return nil, err
	}
	if up.public {
		return c, nil
	}
	moved, leave := g.visit(ctx, up.session, up.app)
	return &conn{Conn: c, moved: moved, leave: leave}, nil
}

package gateway

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/app"
)

const (
	ownerTime  = 10 * time.Second    // how long the app of a port is cached
	freeTime   = time.Second         // how long it is cached that a port has no app
	greetedFor = 30 * 24 * time.Hour // how long the browser of a visitor without a login is recognized
)

// portOf returns the port of a host in port mode. It reports false for other hosts and for ports
// outside of the range.
func (m mode) portOf(host string) (int, bool) {
	if m.ports == nil {
		return 0, false
	}
	name, text, err := net.SplitHostPort(host)
	if err != nil || !strings.EqualFold(name, m.host) {
		return 0, false
	}
	port, err := strconv.Atoi(text)
	return port, err == nil && m.ports.Has(port) && strconv.Itoa(port) == text
}

// owners caches the app of each port.
type owners struct {
	mu sync.Mutex
	m  map[int]owner
}

type owner struct {
	target app.Target
	ok     bool
	at     time.Time
}

func (o *owners) get(port int) (owner, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x, ok := o.m[port]
	return x, ok
}

func (o *owners) set(port int, x owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.m == nil {
		o.m = map[int]owner{}
	}
	o.m[port] = x
}

// find sets the target of a location in port mode. A ticket can be for an app that has just
// received its port, so the database is asked in that case. While the database cannot be reached,
// apps keep their ports.
func (g *Gateway) find(ctx context.Context, at *location) error {
	if at.port == 0 {
		return nil
	}
	last, known := g.owners.get(at.port)
	age := clock.Now().Sub(last.at)
	if known && at.path != app.EnterPath && (age < freeTime || last.ok && age < ownerTime) {
		return last.answer(at)
	}
	if !g.lookups.take(clock.Now(), lookupsPerSec, lookupsAtOnce) {
		if known {
			return last.answer(at)
		}
		return problem.Unavailable("too many ports without an app are requested").RetryAfter(time.Second)
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	target, ok, err := g.appAt(ctx, at.port)
	if err != nil {
		g.log.WarnContext(ctx, "find the app of a port", "port", at.port, "error", err)
		if last.ok {
			return last.answer(at)
		}
		return problem.Unavailable("the app of this port cannot be found at the moment").RetryAfter(time.Second).Because(err)
	}
	last = owner{target: target, ok: ok, at: clock.Now()}
	g.owners.set(at.port, last)
	return last.answer(at)
}

func (o owner) answer(at *location) error {
	at.target = o.target
	if !o.ok {
		return problem.NotFound("app")
	}
	return nil
}

// greet makes the browser delete all data that another app has stored for the same origin, its
// cache included, when the browser enters the app of a port for the first time. It reports whether
// it did. Without TLS, browsers ignore the header, so answers are then never cached (see filter).
func (g *Gateway) greet(w http.ResponseWriter, r *http.Request, at location) bool {
	if at.port == 0 {
		return false
	}
	for _, c := range r.CookiesNamed(at.cookieName()) {
		if _, ok := g.read(c.Value, at.target); ok {
			return false
		}
	}
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	return true
}

// countPorts updates the metric of ports.
func (g *Gateway) countPorts(ctx context.Context) {
	r := g.cfg.Ports
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	n, err := g.Apps.PortsInUse(ctx, r)
	if err != nil {
		g.log.WarnContext(ctx, "count the ports of apps", "error", err)
		return
	}
	g.meter.ports.WithLabelValues("assigned").Set(float64(n))
	g.meter.ports.WithLabelValues("free").Set(float64(r.Size() - n))
}

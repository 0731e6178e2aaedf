package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
)

// Times and limits.
const (
	listTime     = 5 * time.Second
	headerTime   = 10 * time.Second
	idleTime     = 2 * time.Minute
	shutdownTime = 5 * time.Second
	maxHeader    = 64 << 10

	cookieLife = 12 * time.Hour   // at most; shorter if the login ends earlier
	entryIdle  = time.Minute      // after this time without a request, an entry is dropped; the next request loads it again
	recheckAll = 10 * time.Second // in case an event was lost
	recheckMax = 10 * time.Second // limit of one pass
	maxEntries = 20000
	maxOpen    = 400 // concurrent requests and connections of one user at one gateway
)

// Names of cookies. Browsers accept the prefix __Host- only over TLS, for this host and all of its
// paths; the prefix __Http- can only be set by a server, in browsers that support it. In port mode,
// the port follows the name, because browsers send the cookies of all ports of a host to each of
// them, and scripts of all ports can set them.
const (
	cookieTLS     = "__Host-berth-app"
	cookieTLSPort = "__Host-Http-berth-app-"
	cookiePlain   = "berth-app"
)

// claims is the content of the cookie of an app, encrypted with the key ring of the cluster.
type claims struct {
	Target     app.Target `json:"t"`
	Credential uuid.UUID  `json:"c"`
	User       uuid.UUID  `json:"u"`
	Expires    time.Time  `json:"e"`
}

// entry is a user in an app, from one address with one credential. Its context ends when the
// credential is revoked, the user loses the permission to open the app, or the session ends.
type entry struct {
	viewer *viewer.Viewer
	from   context.Context // has the client's address
	target app.Target
	ctx    context.Context
	end    context.CancelFunc
	public bool // a visitor without a login
	open   atomic.Int64
	used   atomic.Int64 // unix seconds

	mu    sync.Mutex
	place *app.Place
	rate  rate      // of a public entry
	up    *upstream // where the app listens; nil before
}

type entries struct {
	mu sync.Mutex
	m  map[string]*entry
}

// upstream returns the address that the app listens on, or nil.
func (e *entry) upstream() *upstream {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up
}

// setUpstream stores the address that the app listens on, and returns the upstream for this entry.
func (e *entry) setUpstream(u *upstream) *upstream {
	if u != nil && u.public != e.public {
		own := *u
		own.public = e.public
		u = &own
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.up = u
	return u
}

// cookieName returns the name of the cookie of an app.
func (at location) cookieName() string {
	switch port := strconv.Itoa(at.port); {
	case at.port > 0 && at.mode.secure:
		return cookieTLSPort + port
	case at.port > 0:
		return cookiePlain + "-" + port
	case at.mode.secure && at.mode.domain != "": // the prefix requires the path /
		return cookieTLS
	}
	return cookiePlain
}

// cookie returns the cookie of an app at its location.
func (at location) cookie(value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: at.cookieName(), Value: value, Path: at.prefix, MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: at.mode.secure, SameSite: http.SameSiteLaxMode,
	}
}

// seal returns the value of a cookie.
func (g *Gateway) seal(c claims) (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(g.Keys.Seal(seal.AppEntry, text)), nil
}

// unseal returns the claims of a cookie's value for a target.
func (g *Gateway) unseal(value string, t app.Target) (c claims, ok bool) {
	c, ok = g.read(value, t)
	return c, ok && c.Expires.After(clock.Now())
}

// read is unseal that also accepts an expired cookie.
func (g *Gateway) read(value string, t app.Target) (c claims, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return c, false
	}
	text, err := g.Keys.Open(seal.AppEntry, raw)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return c, false
	}
	return c, c.Target == t
}

// entryOf returns the entry of a request to an app: by the cookie of the app, or by an access
// token. A cookie for another app or login is ignored.
func (g *Gateway) entryOf(r *http.Request, at location) (*entry, error) {
	if secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && auth.IsToken(secret) {
		sum := sha256.Sum256([]byte(secret))
		return g.enter(r, at, string(sum[:]), func(ctx context.Context) (*viewer.Viewer, error) {
			v, err := g.Auth.Bearer(ctx, "Bearer "+secret)
			if err == nil {
				err = g.record(viewer.With(ctx, v), at.target)
			}
			return v, err
		})
	}
	value, said, err := g.cookieOf(r, at)
	if err != nil {
		return nil, err
	}
	return g.enter(r, at, value, func(ctx context.Context) (*viewer.Viewer, error) {
		v, err := g.Auth.Holder(ctx, said.Credential)
		if err == nil && v.User != said.User {
			err = problem.Unauthenticated("the login belongs to another user")
		}
		return v, err
	})
}

// cookieOf returns the cookie of the app that a request has. Without TLS, the page of a sibling
// host can add cookies with the name of ours: invalid cookies are skipped, and cookies of two users
// are rejected, because one of them may belong to an attacker.
func (g *Gateway) cookieOf(r *http.Request, at location) (value string, said claims, err error) {
	for _, c := range r.Cookies() {
		if c.Name != at.cookieName() {
			continue
		}
		next, ok := g.unseal(c.Value, at.target)
		switch {
		case !ok || value != "" && next.User == said.User:
		case value != "":
			return "", said, problem.Forbidden("the browser sends the cookies of two users for this app: delete the cookies of this site")
		default:
			value, said = c.Value, next
		}
	}
	if value == "" {
		err = problem.Unauthenticated("open the app from its session")
	}
	return value, said, err
}

// enter returns the live entry for a secret, or creates one.
func (g *Gateway) enter(r *http.Request, at location, secret string, find func(context.Context) (*viewer.Viewer, error)) (*entry, error) {
	ctx := g.Auth.Addressed(r).Context()
	key := at.target.Label() + "|" + auth.AddressFrom(ctx).String() + "|" + secret
	g.entries.mu.Lock()
	e := g.entries.m[key]
	full := len(g.entries.m) >= maxEntries
	g.entries.mu.Unlock()
	if e != nil && e.ctx.Err() == nil {
		e.used.Store(clock.Now().Unix())
		return e, nil
	}
	if full {
		return nil, problem.Unavailable("too many apps are open at this gateway").RetryAfter(recheckAll)
	}
	v, err := find(ctx)
	if err != nil {
		return nil, err
	}
	place, err := g.Apps.Admit(ctx, v, auth.AddressFrom(ctx), at.target)
	if err != nil {
		return nil, err
	}
	return g.keep(ctx, key, v, place), nil
}

// keep stores a new entry and watches its credential.
func (g *Gateway) keep(ctx context.Context, key string, v *viewer.Viewer, place *app.Place) *entry {
	g.mu.Lock()
	base := g.base
	g.mu.Unlock()
	if base == nil {
		base = context.Background()
	}
	e := &entry{viewer: v, public: v.IsAnonymous(), from: context.WithoutCancel(ctx), target: place.Target, place: place}
	e.ctx, e.end = context.WithCancel(base)
	e.used.Store(clock.Now().Unix())
	watched, stop := context.WithCancel(e.from)
	var gone <-chan struct{} // nil without a login: never closed
	if !e.public {
		gone = g.Auth.Watch(watched, v)
	}
	g.entries.mu.Lock()
	g.entries.m[key] = e
	g.entries.mu.Unlock()
	g.serves.Go(func() {
		defer stop()
		select {
		case <-gone:
			e.end()
		case <-e.ctx.Done():
		}
		g.entries.mu.Lock()
		defer g.entries.mu.Unlock()
		if g.entries.m[key] == e {
			delete(g.entries.m, key)
		}
	})
	return e
}

// record writes an entry in the audit log; if that fails, the user cannot open the app.
func (g *Gateway) record(ctx context.Context, t app.Target) error {
	err := g.Audit.Require(ctx, audit.Entry{Action: "enterApp", Entity: access.Session, ID: t.Session, Message: t.App})
	if err != nil {
		return problem.Unavailable("the audit log cannot be written").RetryAfter(time.Second).Because(err)
	}
	return nil
}

// watch ends entries whose session has ended or whose user has lost the permission: immediately
// after an event, and otherwise every few seconds. It also drops unused entries.
func (g *Gateway) watch(ctx context.Context) {
	events := g.Bus.Subscribe(ctx, event.Session, event.Policy)
	tick := time.NewTicker(recheckAll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			if e.Topic != event.Session { // a policy has changed, or events were lost
				g.recheck(ctx, uuid.Nil)
				continue
			}
			if e.By != event.BySamples && e.By != event.ByReasons {
				g.recheck(ctx, e.ID)
			}
		case <-tick.C:
			g.recheck(ctx, uuid.Nil)
			g.starts.sweep()
			g.countPorts(ctx)
		}
	}
}

// recheck compares the entries of one session, or of all, with the current permissions of their
// viewers. If the database cannot be reached, entries stay.
func (g *Gateway) recheck(ctx context.Context, session uuid.UUID) {
	ctx, cancel := context.WithTimeout(ctx, recheckMax)
	defer cancel()
	g.entries.mu.Lock()
	var list []*entry
	idle := clock.Now().Add(-entryIdle).Unix()
	for _, e := range g.entries.m {
		if e.open.Load() == 0 && e.used.Load() < idle {
			e.end()
			continue
		}
		if session == uuid.Nil || e.target.Session == session {
			list = append(list, e)
		}
	}
	g.entries.mu.Unlock()
	for _, e := range list {
		place, err := g.admitted(ctx, e)
		if err != nil {
			if denied(err) {
				e.end()
			} else if ctx.Err() == nil {
				g.log.WarnContext(ctx, "check the entry of an app", "session", e.target.Session, "error", err)
			}
			continue
		}
		e.mu.Lock()
		moved := !place.Running()
		e.place = place
		if moved {
			e.up = nil
		}
		e.mu.Unlock()
		if moved && e.open.Load() > 0 && place.Over() {
			e.end()
		}
	}
}

// denied reports whether an error means that the viewer has lost the permission, and not that the
// check failed.
func denied(err error) bool {
	p, _ := problem.From(err)
	return p.Code == problem.CodeNotFound || p.Code == problem.CodePermissionDenied || p.Code == problem.CodeUnauthenticated
}

package gateway

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/auth"
)

// Limits for visitors of public apps, who have no login. An IPv6 address counts as its /64.
const (
	maxVisitors    = 5000 // addresses with an entry, so that capacity is left for users with a login
	maxVisits      = 50   // concurrent requests and connections of one address
	visitsPerSec   = 20   // requests of one address to one app
	visitsAtOnce   = 200  // burst after a pause
	visitorsPerSec = 10   // new entries, each with a row in the audit log
	entersAtOnce   = 100
	lookupsPerSec  = 200 // look-ups of public apps, so that strangers cannot overload the database
	lookupsAtOnce  = 400
)

// rate is a token bucket. Its zero value is full.
type rate struct {
	mu    sync.Mutex
	spent float64
	at    time.Time
}

// take reports whether one more event is within the rate, and counts it.
func (r *rate) take(now time.Time, perSec, most float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = max(0, r.spent-now.Sub(r.at).Seconds()*perSec)
	r.at = now
	if r.spent+1 > most {
		return false
	}
	r.spent++
	return true
}

// admitted returns the place of an entry if its visitor can stay.
func (g *Gateway) admitted(ctx context.Context, e *entry) (*app.Place, error) {
	if e.public {
		return g.Apps.AdmitPublic(ctx, auth.AddressFrom(e.from), e.target)
	}
	return g.Apps.Admit(ctx, e.viewer, auth.AddressFrom(e.from), e.target)
}

// enterPublic returns the entry of an address in a public app. Entries without a login are also in
// the audit log.
func (g *Gateway) enterPublic(r *http.Request, at location) (*entry, error) {
	ctx := r.Context()
	key := at.target.Label() + "|" + auth.NetworkFrom(ctx) + "|public"
	g.entries.mu.Lock()
	e, visitors := g.entries.m[key], 0
	if e == nil {
		for _, other := range g.entries.m {
			if other.public {
				visitors++
			}
		}
	}
	g.entries.mu.Unlock()
	if e != nil && e.ctx.Err() == nil {
		e.used.Store(clock.Now().Unix())
		return e, nil
	}
	place, err := g.Apps.AdmitPublic(ctx, auth.AddressFrom(ctx), at.target)
	if err != nil {
		return nil, err
	}
	if visitors >= maxVisitors || !g.visitors.take(clock.Now(), visitorsPerSec, entersAtOnce) {
		return nil, problem.Unavailable("too many people open public apps").RetryAfter(time.Second)
	}
	v := viewer.Anonymous()
	if err := g.record(viewer.With(ctx, v), at.target); err != nil {
		return nil, err
	}
	return g.keep(ctx, key, v, place), nil
}

// stranger answers a request without a valid entry. The app may be public; otherwise the answer is
// err.
func (g *Gateway) stranger(w http.ResponseWriter, r *http.Request, at location, err error) {
	if !g.lookups.take(clock.Now(), lookupsPerSec, lookupsAtOnce) {
		g.knock(w, r, at, err)
		return
	}
	switch e, perr := g.enterPublic(r, at); {
	case perr == nil:
		g.serveVisitor(w, r, at, e)
	case errdefs.IsUnauthorized(perr): // the app is not public
		g.knock(w, r, at, err)
	default:
		g.refuse(w, r, perr)
	}
}

// serveVisitor serves a request without a login, within the limits of its address.
func (g *Gateway) serveVisitor(w http.ResponseWriter, r *http.Request, at location, e *entry) {
	if !e.rate.take(clock.Now(), visitsPerSec, visitsAtOnce) {
		g.refuse(w, r, problem.Exhausted("your network sends more than %d requests a second to this app", visitsPerSec).WithLimit(strconv.Itoa(visitsPerSec)).RetryAfter(time.Second))
		return
	}
	leave, ok := g.places.Try(uuid.NewSHA1(uuid.Nil, []byte(auth.NetworkFrom(r.Context()))), maxVisits)
	if !ok {
		g.refuse(w, r, problem.Exhausted("your network has %d requests and connections open at this gateway", maxVisits).WithLimit(strconv.Itoa(maxVisits)))
		return
	}
	defer leave()
	if at.port > 0 && navigates(r) && g.greet(w, r, at) {
		if value, err := g.seal(claims{Target: at.target}); err == nil { // it has expired, so it cannot open an app
			http.SetCookie(w, at.cookie(value, greetedFor))
		}
	}
	g.use(w, r, at, e)
}

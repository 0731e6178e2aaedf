package gateway

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/store"
)

// ownPaths is the directory of the paths that the gateway answers itself, on every host of an app.
const ownPaths = "/.berth/"

// ServeHTTP implements http.Handler: it serves the apps and models.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.ofModels(r, true) {
		g.models.handler.ServeHTTP(w, r)
		return
	}
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	defer func() { g.meter.requests.WithLabelValues(strconv.Itoa(rec.status/100) + "xx").Inc() }()
	handler := audit.Address(g.Auth.ClientAddress, http.HandlerFunc(g.serve))
	requestid.Middleware(handler).ServeHTTP(rec, r)
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	r = g.Auth.Addressed(r)
	at, slash, ok := g.locate(r)
	switch {
	case !ok:
		g.refuse(w, r, problem.NotFound("app").WithStatus(http.StatusMisdirectedRequest))
		return
	case slash:
		http.Redirect(w, r, at.prefix+query(r), http.StatusPermanentRedirect)
		return
	}
	if err := g.find(r.Context(), &at); err != nil {
		g.refuse(w, r, err)
		return
	}
	if at.path == app.EnterPath {
		g.redeem(w, r, at)
		return
	}
	if why := at.trespass(r); why != "" {
		g.refuse(w, r, problem.Forbidden("%s", why))
		return
	}
	e, err := g.entryOf(r, at)
	if err != nil {
		g.stranger(w, r, at, err)
		return
	}
	leave, ok := g.places.Try(e.viewer.Person(), maxOpen)
	if !ok {
		g.refuse(w, r, problem.Exhausted("you have %d requests and connections open at this gateway; close some", maxOpen).WithLimit(strconv.Itoa(maxOpen)))
		return
	}
	defer leave()
	g.use(w, r, at, e)
}

// use serves a request of an entry, and ends it when the entry ends.
func (g *Gateway) use(w http.ResponseWriter, r *http.Request, at location, e *entry) {
	e.open.Add(1)
	g.meter.open.Inc()
	defer g.meter.open.Dec()
	defer e.open.Add(-1)
	ctx, cancel := context.WithCancel(store.StatementTimeout(viewer.With(r.Context(), e.viewer), listTime))
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	if body := r.Body; r.ProtoMajor == 2 { // the transport watches ctx only when it has read the whole body
		defer context.AfterFunc(ctx, func() { _ = body.Close() })()
	}
	r = r.WithContext(ctx)
	switch {
	case at.path == ownPaths+"wait":
		g.await(w, r, at, e)
	case strings.HasPrefix(at.path, ownPaths):
		g.refuse(w, r, problem.NotFound("page"))
	default:
		g.pass(w, r, at, e)
	}
}

// redeem exchanges a ticket for the cookie of the app, and redirects to the app. Only the host that
// the ticket was created for accepts it.
func (g *Gateway) redeem(w http.ResponseWriter, r *http.Request, at location) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet {
		g.refuse(w, r, problem.Invalid("ticket", "is redeemed with GET").WithStatus(http.StatusMethodNotAllowed))
		return
	}
	path, err := g.admit(w, r, at)
	if err != nil {
		g.knock(w, r, at, err)
		return
	}
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// admit checks the ticket of a request and sets the cookie.
func (g *Gateway) admit(w http.ResponseWriter, r *http.Request, at location) (path string, err error) {
	ctx := r.Context()
	t, err := g.Apps.Redeem(ctx, r.URL.Query().Get("ticket"))
	if err != nil {
		return "", err
	}
	if t.Target != at.target {
		return "", problem.Unauthenticated("the ticket is for another app")
	}
	v, err := g.Auth.Holder(ctx, t.Credential)
	if err != nil {
		return "", err
	}
	if v.User != t.User {
		return "", problem.Unauthenticated("the ticket is for another user")
	}
	if _, err := g.Apps.Admit(ctx, v, auth.AddressFrom(ctx), t.Target); err != nil {
		return "", err
	}
	if err := g.record(viewer.With(ctx, v), t.Target); err != nil {
		return "", err
	}
	value, err := g.seal(claims{Target: t.Target, Credential: t.Credential, User: t.User, Expires: clock.Now().Add(cookieLife)})
	if err != nil {
		return "", err
	}
	g.greet(w, r, at)
	http.SetCookie(w, at.cookie(value, cookieLife))
	return strings.TrimSuffix(at.prefix, "/") + t.Path, nil
}

// knock answers a request without a valid entry: a user is redirected to the page, which creates a
// ticket if they are logged in and can open the app. A program gets the error.
func (g *Gateway) knock(w http.ResponseWriter, r *http.Request, at location, err error) {
	p, _ := problem.From(err)
	if p.Code != problem.CodeUnauthenticated || !navigates(r) || g.cfg.PageURL == "" || at.path == app.EnterPath && r.URL.Query().Get("ticket") == "" {
		g.refuse(w, r, err)
		return
	}
	path := "/"
	if at.path != app.EnterPath {
		path = at.path + query(r)
	}
	w.Header().Set("Cache-Control", "no-store")
	to := strings.TrimSuffix(g.cfg.PageURL, "/") + app.AskPath + "?" + url.Values{"app": {at.target.Label()}, "path": {path}}.Encode()
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// query returns the query of a request with its question mark.
func query(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return ""
	}
	return "?" + r.URL.RawQuery
}

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/attach"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/devicelogin"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/sessionfile"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/web"
)

// serveHTTP serves users until ctx ends.
func (m *Manager) serveHTTP(ctx context.Context) error {
	srv := &http.Server{
		Handler:           m.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(m.cfg.HTTP) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // open streams do not end by themselves
	}
	<-done
	return nil
}

// Handler returns all HTTP routes for users and programs.
func (m *Manager) Handler() http.Handler {
	api := http.NewServeMux()
	api.Handle("/graphql", m.graph.Server(m.socketInit))
	m.auth.Register(api)
	m.providers.Register(api)
	m.signups.Register(api)
	devicelogin.New(devicelogin.Config{Client: m.client, Redis: m.redis, Auth: m.auth, Audit: m.audit, Logger: m.log}).Register(api)
	at := &attach.Handler{Client: m.client, Sessions: m.core.Sessions, Streams: m.core.Agents.Streams, Idle: m.idle, Revoked: m.auth, Audit: m.audit, Open: m.attached, Logger: m.log}
	at.Register(api)
	files := &sessionfile.Handler{Find: at.Find, Revoked: m.auth, Idle: m.idle, Audit: m.audit, Metrics: m.files, Logger: m.log}
	files.Register(api)
	m.builds.Register(api)
	m.audit.Register(api)

	mux := http.NewServeMux()
	mux.Handle("/graphql", m.authenticated(m.revocable(m.knocks.limit(m.auth.ClientAddress, api))))
	mux.Handle("/auth/", api) // checks credentials itself: a client with an expired cookie must be able to log in
	mux.Handle(devicelogin.CodePath, m.authenticated(api))
	mux.Handle("/sessions/{id}/terminal", m.authenticated(api))
	mux.Handle("/sessions/{id}/ports/{port}", m.authenticated(api))
	mux.Handle("/sessions/{id}/log", m.authenticated(api))
	mux.Handle("/sessions/{id}/files", m.authenticated(api))
	mux.Handle("/sessions/{id}/files/", m.authenticated(api))
	mux.Handle("/images/files", m.authenticated(api))
	mux.Handle("/images/files/{digest}", m.authenticated(api))
	mux.Handle("/export/audit.csv", m.authenticated(api))
	mux.HandleFunc("POST "+image.WebhookPath+"{id}", func(w http.ResponseWriter, r *http.Request) {
		m.core.Images.Webhook(w, r, m.auth.ClientAddress(r))
	})
	mux.Handle("GET "+app.AskPath, m.optional(http.HandlerFunc(m.apps.Ask)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /readyz", opsserver.Ready(m.Checks()))
	if m.cfg.Registry != nil {
		own := opsserver.Scrape(m.Metrics())
		mux.Handle("GET /metrics", m.forScraping(own))
		m.targets(own).Register(mux)
	}
	if m.cfg.Storage != nil {
		mux.Handle("/storage/", http.StripPrefix("/storage", m.cfg.Storage))
	}
	mux.Handle("/", web.Handler(m.elsewhere))
	all := requestid.Middleware(audit.Address(m.auth.ClientAddress, m.observe(timely(bounded(m.notFromApps(mux))))))
	if m.cfg.Before != nil {
		return m.cfg.Before(all)
	}
	return all
}

// elsewhere returns the URLs of other hosts that the page sends requests to: those of storage proxies and of models.
func (m *Manager) elsewhere(ctx context.Context) []string {
	list := m.folders.ProxyURLs(ctx)
	if models := m.apps.ModelsURL(); models != "" {
		list = append(list, models)
	}
	return list
}

// optional adds the viewer to requests of a browser that visits an address. An expired login counts
// as no login.
func (m *Manager) optional(next http.Handler) http.Handler {
	known := m.authenticated(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.auth.Knows(r) {
			known.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, m.auth.Addressed(r))
	})
}

// statementTimeout limits each statement of a request, so that the answer is 503 if the
// database hangs. GraphQL has its own limits.
const statementTimeout = 5 * time.Second

// bounded limits the statements of requests, and prevents browsers from guessing content
// types.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r.WithContext(store.StatementTimeout(r.Context(), statementTimeout)))
	})
}

// authenticated adds the viewer to requests. Invalid credentials, and a cookie without the
// CSRF header, are rejected and recorded in the audit log.
func (m *Manager) authenticated(next http.Handler) http.Handler {
	return m.audit.Refusals("authenticate", m.auth.Authenticate, m.audit.Refusals("actAs", m.auth.ActAs, next))
}

// socketInit authenticates a WebSocket by its first message if the request itself had no
// credentials, because programs in browsers cannot set headers.
func (m *Manager) socketInit(ctx context.Context, init transport.InitPayload) (context.Context, *transport.InitPayload, error) {
	if v := viewer.From(ctx); v != nil && !v.IsAnonymous() {
		return ctx, nil, nil
	}
	header := init.Authorization()
	if header == "" {
		err := problem.Unauthenticated("log in first")
		m.auth.RefusedSocket(err)
		m.audit.Denied(ctx, audit.Entry{Action: "connect"}, err)
		return ctx, nil, errors.New("unauthenticated") // gqlgen looks for a close reason in ctx
	}
	v, err := m.auth.Bearer(ctx, header)
	if err != nil {
		m.auth.RefusedSocket(err)
		m.audit.Denied(ctx, audit.Entry{Action: "connect"}, err)
		return ctx, nil, errors.New("unauthenticated") // gqlgen looks for a close reason in ctx
	}
	known(ctx)
	ctx = viewer.With(ctx, v)
	return m.untilRevoked(ctx), nil, nil
}

// revocable ends the streams of a request when its credential is revoked.
func (m *Manager) revocable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams := r.Header.Get("Upgrade") != "" || strings.Contains(r.Header.Get("Accept"), "text/event-stream")
		if v := viewer.From(r.Context()); !streams || v == nil || v.IsAnonymous() {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(m.untilRevoked(r.Context())))
	})
}

func (m *Manager) untilRevoked(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	gone := m.auth.Watch(ctx, viewer.From(ctx))
	go func() {
		select {
		case <-ctx.Done():
		case <-gone:
			cancel(problem.Unauthenticated("your login has ended"))
		}
	}()
	return ctx
}

package auth

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// Watch returns a channel that is closed when v's credential is revoked, when their
// permissions are reduced, or when the address of ctx is no longer allowed. Every connection
// that outlives a request (subscription, terminal, port) must watch it and end. The watch ends
// with ctx.
func (s *Service) Watch(ctx context.Context, v *viewer.Viewer) <-chan struct{} {
	w := &watcher{viewer: v, from: AddressFrom(ctx), ended: make(chan struct{})}
	s.watchers.add(w)
	context.AfterFunc(ctx, func() { s.watchers.remove(w) })
	return w.ended
}

// Disconnect closes the connections of a credential or a user: here at once, and at the other
// managers by an event.
func (s *Service) Disconnect(ctx context.Context, credentialOrUser uuid.UUID) {
	s.watchers.end(credentialOrUser)
	s.bus.Publish(ctx, event.Event{Topic: event.Login, ID: credentialOrUser})
}

// Recheck makes all managers check at once whether the connections of a user are still
// allowed, and close the others.
func (s *Service) Recheck(ctx context.Context, user uuid.UUID) {
	s.bus.Publish(ctx, event.Event{Topic: event.Login, ID: user, Data: recheck})
}

// recheck is the payload of events that request a check of connections; other events end them.
var recheck = []byte("recheck")

// watchBus handles the events, and every few seconds compares all connections with the rows.
func (s *Service) watchBus(ctx context.Context) {
	events := s.bus.Subscribe(ctx, event.Login)
	tick := time.NewTicker(s.recheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			switch {
			case e.Topic != event.Login: // events were lost
				s.compare(ctx, s.watchers.all())
			case bytes.Equal(e.Data, recheck):
				s.compare(ctx, s.watchers.of(e.ID))
			default:
				s.watchers.end(e.ID)
			}
		case <-tick.C:
			s.compare(ctx, s.watchers.all())
		}
	}
}

// compare closes the connections whose credential or permissions have changed. If the database
// cannot be reached, none are closed.
func (s *Service) compare(ctx context.Context, open []*watcher) {
	if len(open) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	current, err := s.current(ctx, open)
	if err != nil {
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "check open connections", "error", err)
		}
		return
	}
	for _, w := range open {
		if !s.stays(ctx, w, current[w.viewer.Credential]) {
			s.watchers.remove(w)
			w.finish()
		}
	}
}

// stays reports whether a connection can continue, given the current state of its credential.
func (s *Service) stays(ctx context.Context, w *watcher, c *credential) bool {
	switch {
	case c == nil || !fromAllowed(c.addresses, w.from):
		return false
	case w.viewer.Actor != uuid.Nil:
		return s.still(ctx, c.viewer, w.viewer)
	}
	return same(c.viewer, w.viewer)
}

// current reads the valid credentials of the watchers. An open connection counts as use of a
// login.
func (s *Service) current(ctx context.Context, open []*watcher) (map[uuid.UUID]*credential, error) {
	var logins, tokens, keypairs, keys []string
	for _, w := range open {
		switch c := w.viewer.Credential; id.KindOf(c) {
		case id.LoginSession:
			logins = append(logins, c.String())
		case id.Keypair:
			keypairs = append(keypairs, c.String())
		case id.SSHKey:
			keys = append(keys, c.String())
		default:
			tokens = append(tokens, c.String())
		}
	}
	t := clock.Now()
	out := map[uuid.UUID]*credential{}
	for _, q := range []struct {
		sql  string
		ids  []string
		args []any
	}{
		{liveLogins + "c.id = ANY($3::uuid[])", logins, []any{t, t.Add(-loginIdle), logins}},
		{liveTokens + "c.id = ANY($2::uuid[])", tokens, []any{t, tokens}},
		{liveKeypairs + "c.id = ANY($1::uuid[])", keypairs, []any{keypairs}},
		{sessionKeys + "c.id = ANY($1::uuid[])", keys, []any{keys}},
	} {
		if len(q.ids) == 0 {
			continue
		}
		found, err := s.find(ctx, q.sql, q.args...)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			out[c.viewer.Credential] = c
			s.touch(ctx, c)
		}
	}
	return out, nil
}

// Holder returns the viewer of a credential that is valid and accepted from the address of ctx. A
// gateway calls it for the cookie of an app, which names the credential that opened the app.
func (s *Service) Holder(ctx context.Context, credential uuid.UUID) (*viewer.Viewer, error) {
	current, err := s.current(ctx, []*watcher{{viewer: &viewer.Viewer{Credential: credential}}})
	if err != nil {
		return nil, err
	}
	c := current[credential]
	if c == nil || !fromAllowed(c.addresses, AddressFrom(ctx)) {
		return nil, problem.Unauthenticated(refused)
	}
	return c.viewer, nil
}

// Addressed adds the client's address to the context of a request, as Authenticate does.
func (s *Service) Addressed(r *http.Request) *http.Request { return s.addressed(r) }

func same(a, b *viewer.Viewer) bool {
	return a.User == b.User && a.Role == b.Role && a.Domain == b.Domain &&
		a.Due == b.Due && slices.Equal(a.Projects, b.Projects) && slices.Equal(a.Admins, b.Admins) &&
		reflect.DeepEqual(a.Grants, b.Grants) && keeps(a.Shares, b.Shares)
}

// keeps reports whether every shared folder is still shared with the same permission. New
// shares do not matter.
func keeps(now, before map[uuid.UUID]access.FolderPermission) bool {
	for folder, p := range before {
		if now[folder] != p {
			return false
		}
	}
	return true
}

// expireLogins writes expired logins to the login history. Package audit deletes their rows.
func (s *Service) expireLogins(ctx context.Context) {
	tick := time.NewTicker(5 * time.Minute)
	defer tick.Stop()
	for {
		if err := s.expire(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "end old logins", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// watcher is one open connection.
type watcher struct {
	viewer *viewer.Viewer
	from   netip.Addr
	once   sync.Once
	ended  chan struct{}
}

func (w *watcher) finish() { w.once.Do(func() { close(w.ended) }) }

// watchers indexes them by credential, by user and by actor.
type watchers struct {
	mu   sync.Mutex
	byID map[uuid.UUID]map[*watcher]struct{}
}

func newWatchers() *watchers { return &watchers{byID: map[uuid.UUID]map[*watcher]struct{}{}} }

func (ws *watchers) add(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, key := range keys(w.viewer) {
		if ws.byID[key] == nil {
			ws.byID[key] = map[*watcher]struct{}{}
		}
		ws.byID[key][w] = struct{}{}
	}
}

func (ws *watchers) remove(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, key := range keys(w.viewer) {
		delete(ws.byID[key], w)
		if len(ws.byID[key]) == 0 {
			delete(ws.byID, key)
		}
	}
}

// of returns the watchers of a credential or user.
func (ws *watchers) of(key uuid.UUID) []*watcher {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Collect(maps.Keys(ws.byID[key]))
}

func (ws *watchers) end(key uuid.UUID) {
	for _, w := range ws.of(key) {
		ws.remove(w)
		w.finish()
	}
}

func (ws *watchers) all() []*watcher {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var list []*watcher
	for key, set := range ws.byID {
		for w := range set {
			if key == w.viewer.Credential { // each has several keys
				list = append(list, w)
			}
		}
	}
	return list
}

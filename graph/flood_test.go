package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/managertest"
)

// reader returns a client with a read-only access token.
func reader(t *testing.T, m *managertest.Manager, of *ent.User) *managertest.Client {
	t.Helper()
	var made struct{ CreateAccessToken struct{ Secret string } }
	m.As(t, of).Must(t, `mutation { createAccessToken(input: {name: "reader", scopes: [READ]}) { secret } }`, nil, &made)
	c := m.Anonymous()
	c.Header.Set("Authorization", "Bearer "+made.CreateAccessToken.Secret)
	return c
}

// epoch waits for a leader and returns its epoch.
func epoch(t *testing.T, w *managertest.World, m *managertest.Manager) int64 {
	t.Helper()
	var got struct {
		Cluster struct{ Leader *struct{ Epoch int64 } }
	}
	managertest.Eventually(t, "a manager leads", func() bool {
		m.As(t, w.Superadmin).Must(t, `{ cluster { leader { epoch } } }`, nil, &got)
		return got.Cluster.Leader != nil
	})
	return got.Cluster.Leader.Epoch
}

// TestFloodOfSubscriptions opens 3,000 subscriptions with a read-only token. Those above the limits
// are rejected, the others share their reads, other users are served, and every change is in the
// audit log.
func TestFloodOfSubscriptions(t *testing.T) {
	t.Parallel()
	w, m, mine, _ := world(t)
	flooder, other := reader(t, m, w.A.Member), m.As(t, w.B.Member)
	const sockets, each = 60, 50
	before := epoch(t, w, m)
	open_, refused := 0, 0
	var listening []*socket
	for range sockets {
		s := open(t, flooder)
		for i := range each {
			s.subscribe(fmt.Sprint(i), `subscription($id: ID) { sessionChanged(id: $id) { id name history { id } } }`, managertest.Vars{"id": mine.ID})
		}
		here := 0
		for answered := 0; answered < each; {
			got := s.next()
			switch {
			case got.Type != "next":
			case strings.Contains(string(got.Payload), "RESOURCE_EXHAUSTED"):
				refused++
				answered++
			case strings.Contains(string(got.Payload), `"errors"`):
				t.Fatalf("%s", got.Payload)
			default:
				here++
				answered++
			}
		}
		if open_ += here; here > 0 {
			listening = append(listening, s)
		}
	}
	if open_ != 200 || refused != sockets*each-200 {
		t.Errorf("%d subscriptions are open and %d refused, want 200 and %d", open_, refused, sockets*each-200)
	}
	renames := []string{"flood-1", "flood-2", "flood-3"}
	bus := w.Bus(t)
	reads := 0
	for _, q := range w.Statements.Of(func() {
		for _, name := range renames {
			touch(t, m, w.A.Member, mine.ID, name)
			bus.Publish(t.Context(), event.Event{Topic: event.Agent})
		}
		other.Must(t, `{ viewer { user { id } } }`, nil, nil)
		for _, s := range listening {
			for heard := map[string]bool{}; len(heard) < each; {
				if got := s.next(); strings.Contains(string(got.Payload), "flood-3") {
					heard[got.ID] = true
				}
			}
		}
	}) {
		if strings.Contains(q, `FROM "session_events"`) {
			reads++
		}
	}
	// One read for each change, and one more for each event that the platform publishes by itself.
	if reads == 0 || reads > 3*len(renames) {
		t.Errorf("%d changes cost %d reads for %d subscriptions", len(renames), reads, open_)
	}
	rows := w.Client.AuditEntry.Query().Where(auditentry.Action("renameSession"), auditentry.EntityID(mine.ID), auditentry.Result("OK")).CountX(w.System(t))
	if rows != len(renames) {
		t.Errorf("%d rows of %d renames in the audit log", rows, len(renames))
	}
	if now := epoch(t, w, m); now != before {
		t.Errorf("the leader of epoch %d has lost its lease: the epoch is %d", before, now)
	}
	// A user who closes connections can open others.
	for _, s := range listening {
		s.c.CloseNow()
	}
	managertest.Eventually(t, "places are given back", func() bool {
		s := open(t, flooder)
		defer s.c.CloseNow()
		s.subscribe("again", sessionChanged, managertest.Vars{"id": mine.ID})
		return !strings.Contains(string(s.next().Payload), "RESOURCE_EXHAUSTED")
	})
}

// TestSocketProtocol checks the close codes of graphql-transport-ws.
func TestSocketProtocol(t *testing.T) {
	t.Parallel()
	w, m, mine, _ := world(t)
	member := m.As(t, w.A.Member)
	raw := func(c *managertest.Client) *socket {
		conn, _, err := dial(t, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.CloseNow() })
		return &socket{t, conn}
	}
	for name, c := range map[string]struct {
		who  *managertest.Client
		do   func(s *socket)
		want websocket.StatusCode
	}{
		"a repeated id": {member, func(s *socket) {
			s.send(message{Type: "connection_init"})
			s.next()
			s.subscribe("one", sessionChanged, managertest.Vars{"id": mine.ID})
			s.next()
			s.subscribe("one", sessionChanged, nil)
		}, 4409},
		"two beginnings": {member, func(s *socket) {
			s.send(message{Type: "connection_init"})
			s.next()
			s.send(message{Type: "connection_init"})
		}, 4429},
		"no beginning":   {member, func(s *socket) { s.subscribe("one", sessionChanged, nil) }, 4401},
		"no credentials": {m.Anonymous(), func(s *socket) { s.send(message{Type: "connection_init"}) }, 4401},
		"wrong credentials": {m.Anonymous(), func(s *socket) {
			s.send(message{Type: "connection_init", Payload: json.RawMessage(`{"Authorization":"Bearer none"}`)})
		}, 4401},
		"no JSON": {member, func(s *socket) {
			if err := s.c.Write(t.Context(), websocket.MessageText, []byte("{")); err != nil {
				t.Error(err)
			}
		}, 4400},
		"an unknown message": {member, func(s *socket) {
			s.send(message{Type: "connection_init"})
			s.next()
			s.send(message{Type: "start", ID: "one"})
		}, 4400},
		"too many subscriptions": {member, func(s *socket) {
			s.send(message{Type: "connection_init"})
			s.next()
			for i := range 160 {
				s.subscribe(fmt.Sprint(i), sessionChanged, managertest.Vars{"id": mine.ID})
			}
		}, 4429},
	} {
		t.Run(name, func(t *testing.T) {
			s := raw(c.who)
			s.t = t
			c.do(s)
			for {
				if _, err := s.read(); err != nil {
					if got := websocket.CloseStatus(err); got != c.want {
						t.Errorf("closed with %d (%v), want %d", got, err, c.want)
					}
					return
				}
			}
		})
	}
	// An id is free again after its end.
	s := open(t, member)
	for range 2 {
		s.subscribe("one", `subscription { sessionChanged(id: "none") { id } }`, nil)
		for s.next().Type != "complete" {
		}
	}
}

// TestNoChangeWithoutARow makes the audit log unwritable.
func TestNoChangeWithoutARow(t *testing.T) {
	t.Parallel()
	w, m, mine, _ := world(t)
	ctx := w.System(t)
	member := m.As(t, w.A.Member)
	rename := `mutation($id: ID!, $n: String!) { renameSession(input: {id: $id, name: $n}) { session { id } } }`
	tx, err := w.Client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "LOCK TABLE audit_entries IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	if errs := member.Ask(t, rename, managertest.Vars{"id": mine.ID, "n": "unseen"}, nil); errs.Code() != "UNAVAILABLE" {
		t.Errorf("a change without a row: %s", errs)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if name := w.Client.Session.GetX(ctx, mine.ID).Name; name != mine.Name {
		t.Errorf("the session is named %q", name)
	}
	// A running mutation already has a row; its result is added at the end.
	tx, err = w.Client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	tx.Session.Query().Where(session.ID(mine.ID)).ForUpdate().OnlyX(viewer.SystemContext(ctx))
	done := make(chan managertest.Errors, 1)
	go func() { done <- member.Ask(t, rename, managertest.Vars{"id": mine.ID, "n": "seen"}, nil) }()
	result := func() string {
		e, err := w.Client.AuditEntry.Query().Where(auditentry.Action("renameSession"), auditentry.EntityID(mine.ID)).Order(ent.Desc(auditentry.FieldAt)).First(ctx)
		if err != nil {
			return ""
		}
		return e.Result
	}
	managertest.Eventually(t, "a row for the running mutation", func() bool { return result() == "STARTED" })
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	select {
	case errs := <-done:
		if len(errs) > 0 || result() != "OK" {
			t.Errorf("%s; the row has %q", errs, result())
		}
	case <-time.After(managertest.Timeout):
		t.Fatal("the change does not end")
	}
}

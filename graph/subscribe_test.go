package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// message is a message of graphql-transport-ws.
type message struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// socket is a WebSocket of a client.
type socket struct {
	t *testing.T
	c *websocket.Conn
}

func dial(t *testing.T, c *managertest.Client) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
	defer cancel()
	header := c.Header.Clone()
	return websocket.Dial(ctx, "ws"+strings.TrimPrefix(c.URL, "http")+"/graphql", &websocket.DialOptions{
		HTTPHeader: header, Subprotocols: []string{"graphql-transport-ws"},
	})
}

func open(t *testing.T, c *managertest.Client) *socket {
	t.Helper()
	conn, _, err := dial(t, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	s := &socket{t, conn}
	s.send(message{Type: "connection_init"})
	if m := s.next(); m.Type != "connection_ack" {
		t.Fatalf("%s, want an ack", m.Type)
	}
	return s
}

func (s *socket) send(m message) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), managertest.Timeout)
	defer cancel()
	if err := wsjson.Write(ctx, s.c, m); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) subscribe(id, query string, vars managertest.Vars) {
	s.t.Helper()
	payload, _ := json.Marshal(map[string]any{"query": query, "variables": vars})
	s.send(message{Type: "subscribe", ID: id, Payload: payload})
}

func (s *socket) read() (message, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), managertest.Timeout)
	defer cancel()
	for {
		var m message
		if err := wsjson.Read(ctx, s.c, &m); err != nil {
			return m, err
		}
		if m.Type != "ping" && m.Type != "pong" {
			return m, nil
		}
	}
}

// hears reads until a message with the text arrives. Earlier messages can be repeated.
func (s *socket) hears(text string) {
	s.t.Helper()
	for !strings.Contains(string(s.next().Payload), text) {
	}
}

func (s *socket) next() message {
	s.t.Helper()
	m, err := s.read()
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// world returns rows of every type, a manager whose loops run, and sessions of A's and B's member.
func world(t *testing.T) (w *managertest.World, m *managertest.Manager, mine, theirs *ent.Session) {
	t.Helper()
	w = managertest.New(t)
	m = w.Start(t)
	rows := seed(t, w)
	rows.more(1)
	for _, s := range w.Client.Session.Query().AllX(rows.ctx) {
		if s.OwnerID == w.A.Member.ID {
			mine = s
		}
	}
	theirs = w.Client.Session.Create().SetName("theirs").SetType("batch").SetStatus(lifecycle.Running).SetSlots(resource.Slots{}).
		SetDomain(w.B.Domain).SetProject(w.B.Project).SetOwner(w.B.Member).SetResourceGroup(w.Group).SetImageID(mine.ImageID).SaveX(rows.ctx)
	return w, m, mine, theirs
}

// touch renames a session as its owner, so that every manager publishes an event.
func touch(t *testing.T, m *managertest.Manager, owner *ent.User, id uuid.UUID, name string) {
	t.Helper()
	m.As(t, owner).Must(t, `mutation($id: ID!, $n: String!) { renameSession(input: {id: $id, name: $n}) { session { id } } }`,
		managertest.Vars{"id": id, "n": name}, nil)
}

const sessionChanged = `subscription($id: ID) { sessionChanged(id: $id) { id name usage { slot } kernels { allocations { device { deviceId } } } } }`

func TestChangesReachWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	w, m, mine, theirs := world(t)
	member, stranger := open(t, m.As(t, w.A.Member)), open(t, m.As(t, w.B.Lead))
	admin := open(t, m.As(t, w.Superadmin))
	for _, s := range []*socket{member, stranger, admin} {
		s.subscribe("all", sessionChanged, nil)
		// The listener gets events only when its subscription has started.
		s.subscribe("ready", `subscription { agentChanged { name } }`, nil)
		s.hears(`"agent1"`)
		s.send(message{Type: "complete", ID: "ready"})
	}
	touch(t, m, w.B.Member, theirs.ID, "renamed-theirs")
	touch(t, m, w.A.Member, mine.ID, "renamed-mine")
	// until reads until a message with the text sought arrives. No message may contain the text
	// never.
	until := func(s *socket, sought, never string) string {
		for {
			got := s.next()
			if got.ID != "all" || got.Type != "next" {
				continue
			}
			text := string(got.Payload)
			if never != "" && strings.Contains(text, never) {
				t.Errorf("got %s", text)
			}
			if strings.Contains(text, sought) {
				return text
			}
		}
	}
	if got := until(member, "renamed-mine", theirs.ID.String()); !strings.Contains(got, `"deviceId":"mem"`) {
		t.Errorf("the member gets %s", got)
	}
	for seen := ""; !strings.Contains(seen, "renamed-theirs") || !strings.Contains(seen, "renamed-mine"); {
		seen += until(admin, "renamed-", "")
	}
	// B's lead administers B's project, so they get the events of this project and no others.
	until(stranger, "renamed-theirs", mine.ID.String())
	touch(t, m, w.A.Member, mine.ID, "again-mine")
	touch(t, m, w.B.Member, theirs.ID, "again-theirs")
	until(stranger, "again-theirs", mine.ID.String())
}

func TestOneSessionIsFollowed(t *testing.T) {
	t.Parallel()
	w, m, mine, theirs := world(t)
	s := open(t, m.As(t, w.A.Member))
	s.subscribe("theirs", sessionChanged, managertest.Vars{"id": theirs.ID})
	if got := s.next(); got.Type != "error" && !strings.Contains(string(got.Payload), "NOT_FOUND") {
		t.Errorf("another's session: %s %s", got.Type, got.Payload)
	}
	s = open(t, m.As(t, w.A.Member))
	s.subscribe("mine", sessionChanged, managertest.Vars{"id": mine.ID})
	if got := s.next(); got.Type != "next" || !strings.Contains(string(got.Payload), mine.Name) {
		t.Fatalf("%s %s", got.Type, got.Payload)
	}
	touch(t, m, w.A.Member, mine.ID, "another-name")
	s.hears("another-name")
	// A client that reconnects gets the current state at once.
	s.c.CloseNow()
	touch(t, m, w.A.Member, mine.ID, "while-away")
	s = open(t, m.As(t, w.A.Member))
	s.subscribe("mine", sessionChanged, managertest.Vars{"id": mine.ID})
	if got := s.next(); !strings.Contains(string(got.Payload), "while-away") {
		t.Errorf("%s", got.Payload)
	}
	if got := subscriptionStatements(t, w, m, mine); got > 12 {
		t.Errorf("a change costs %d statements", got)
	}
}

// subscriptionStatements counts the statements for one change of a session, whatever the number of
// its kernels and devices. The rename itself and its audit are included.
func subscriptionStatements(t *testing.T, w *managertest.World, m *managertest.Manager, mine *ent.Session) int {
	t.Helper()
	reads := 0
	for _, q := range w.Statements.Of(func() {
		s := open(t, m.As(t, w.A.Member))
		s.subscribe("mine", sessionChanged, managertest.Vars{"id": mine.ID})
		s.next()
	}) {
		if strings.Contains(q, `FROM "kernels"`) || strings.Contains(q, `FROM "allocations"`) || strings.Contains(q, `FROM "devices"`) {
			reads++
		}
	}
	return reads
}

// A client that does not read delays no other client, and finally gets the current state.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	w, m, mine, _ := world(t)
	slow, quick := open(t, m.As(t, w.A.Member)), open(t, m.As(t, w.A.Member))
	for _, s := range []*socket{slow, quick} {
		s.subscribe("mine", sessionChanged, managertest.Vars{"id": mine.ID})
		s.next()
	}
	ctx := w.System(t)
	bus := w.Bus(t)
	for range 3000 { // far more than any buffer of events
		bus.Publish(ctx, event.Event{Topic: event.Session, ID: mine.ID})
	}
	touch(t, m, w.A.Member, mine.ID, "the-last-name")
	for _, s := range []*socket{quick, slow} {
		s.hears("the-last-name")
	}
}

func TestSocketsAreForOwnPages(t *testing.T) {
	t.Parallel()
	w, m, _, _ := world(t)
	c := m.As(t, w.A.Member)
	for _, origin := range []string{"https://evil.example", "http://" + strings.TrimPrefix(m.URL, "http://") + ".evil.example", "null", ""} {
		foreign := &managertest.Client{URL: m.URL, Header: c.Header.Clone()}
		foreign.Header.Set("Origin", origin)
		conn, resp, err := dial(t, foreign)
		if err == nil {
			conn.CloseNow()
			t.Errorf("origin %q is let in", origin)
		} else if resp == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("origin %q: %v", origin, err)
		}
	}
	// Without credentials, there is no ack.
	conn, _, err := dial(t, m.Anonymous())
	if err != nil {
		t.Fatal(err)
	}
	s := &socket{t, conn}
	s.send(message{Type: "connection_init"})
	for {
		got, err := s.read()
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("an anonymous socket stays open")
		}
		if err != nil {
			return
		}
		if got.Type == "connection_ack" {
			t.Error("an anonymous client gets an ack")
		}
	}
}

func TestRevokedLoginClosesTheSocket(t *testing.T) {
	t.Parallel()
	w, m, mine, _ := world(t)
	c := m.As(t, w.A.Member)
	s := open(t, c)
	s.subscribe("mine", sessionChanged, managertest.Vars{"id": mine.ID})
	s.next()
	if status, text := c.Post(t, "/auth/logout", "application/json", nil); status >= 300 {
		t.Fatalf("logout: %d %s", status, text)
	}
	for {
		m, err := s.read()
		if err != nil {
			break
		}
		if m.Type == "next" {
			t.Error("got a change after the logout")
		}
	}
}

func TestNothingOfOthers(t *testing.T) {
	t.Parallel()
	w, m, mine, theirs := world(t)
	ctx := w.System(t)
	member := m.As(t, w.A.Member)
	ids := map[string]uuid.UUID{
		"session": theirs.ID, "domain": w.B.ID, "project": w.B.Project.ID, "user": w.B.Member.ID,
		"token": w.Client.AccessToken.Query().FirstX(ctx).ID, "login": w.Client.LoginSession.Query().FirstX(ctx).ID,
		"policy": w.Client.ResourcePolicy.Query().FirstX(ctx).ID, "folder": w.Client.Vfolder.Query().Where(vfolder.OwnerIDNEQ(w.A.Member.ID)).FirstX(ctx).ID,
		"scope": w.Client.QuotaScope.Query().Where(quotascope.HolderIDNEQ(w.A.Member.ID)).FirstX(ctx).ID,
	}
	for what, id := range ids {
		var got struct{ Node *struct{ ID string } }
		if errs := member.Ask(t, `query($id: ID!) { node(id: $id) { id } }`, managertest.Vars{"id": id}, &got); len(errs) > 0 || got.Node != nil {
			t.Errorf("%s of another: %v %s", what, got.Node, errs)
		}
	}
	var got struct{ Node *struct{ ID string } }
	if member.Must(t, `query($id: ID!) { node(id: $id) { id } }`, managertest.Vars{"id": mine.ID}, &got); got.Node == nil {
		t.Error("one's own session is null")
	}
	for _, q := range []string{
		`mutation($id: ID!) { terminateSession(input: {id: $id}) { session { id } } }`,
		`mutation($id: ID!) { renameSession(input: {id: $id, name: "mine-now"}) { session { id } } }`,
	} {
		if errs := member.Ask(t, q, managertest.Vars{"id": theirs.ID}, nil); errs.Code() != "NOT_FOUND" {
			t.Errorf("%.40s: %s", q, errs)
		}
	}
	// A filter reveals nothing about invisible rows.
	var count struct {
		Sessions struct{ TotalCount int }
		Users    struct{ TotalCount int }
	}
	member.Must(t, `query($o: ID!) { sessions(where: {ownerID: $o}) { totalCount } users(where: {or: [{emailContainsFold: "member-b"}, {not: {emailContainsFold: "member-a"}}]}) { totalCount } }`,
		managertest.Vars{"o": w.B.Member.ID}, &count)
	if count.Sessions.TotalCount != 0 || count.Users.TotalCount != 1 { // A's lead
		t.Errorf("filters find %d sessions and %d users", count.Sessions.TotalCount, count.Users.TotalCount)
	}
}

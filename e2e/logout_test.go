package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/berthhq/berth/e2e/cluster"
)

// Logging out ends all connections of the login at once.
func TestLogoutEndsStreams(t *testing.T) {
	u := platform.User(t)
	s := u.Run(cluster.Interactive())
	u.Until(s.ID, "RUNNING")
	browser, other := page(t, u), page(t, u)
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Timeout)
	defer cancel()

	ended := make(chan string, 3)
	mine, bystander := terminalOf(t, ctx, browser, s.ID), terminalOf(t, ctx, other, s.ID)
	go func() { ended <- "terminal: " + drain(ctx, mine) }()
	go func() { ended <- "bystander: " + drain(ctx, bystander) }()
	events := graphqlSocket(t, ctx, &websocket.DialOptions{HTTPClient: browser, HTTPHeader: ownOrigin()}, "", s.ID)
	go func() { ended <- "events: " + drain(ctx, events) }()
	socket := graphqlSocket(t, ctx, nil, "Bearer "+u.Token, s.ID)

	if resp, body := exchange(t, browser, "POST", platform.URL+"/auth/logout", "", "X-Berth-CSRF", "1"); resp.StatusCode != 204 {
		t.Fatalf("logout: %s %s", resp.Status, body)
	}
	for range 2 {
		select {
		case what := <-ended:
			if strings.HasPrefix(what, "bystander") {
				t.Errorf("a logout ends the terminal of another login: %s", what)
			}
		case <-ctx.Done():
			t.Fatal("a stream outlives its login")
		}
	}
	if resp, _ := exchange(t, browser, "GET", platform.URL+"/auth/session", ""); resp.StatusCode != 401 {
		t.Errorf("after logout: %s", resp.Status)
	}
	if resp, _ := exchange(t, other, "GET", platform.URL+"/auth/session", ""); resp.StatusCode != 200 {
		t.Errorf("another login of the same user: %s", resp.Status)
	}
	if err := bystander.Write(ctx, websocket.MessageText, []byte(`{"type":"resize","cols":90,"rows":20}`)); err != nil {
		t.Errorf("the terminal of another login: %v", err)
	}
	// Revoking a token ends its WebSocket.
	tokens, err := u.AccessTokens(ctx)
	if err != nil || len(tokens) != 1 {
		t.Fatalf("tokens: %v, %v", tokens, err)
	}
	u.End(s.ID)
	if err := u.RevokeAccessToken(ctx, tokens[0].ID); err != nil {
		t.Fatal(err)
	}
	drain(ctx, socket)
	if ctx.Err() != nil {
		t.Error("a WebSocket outlives its token")
	}
}

// page returns an HTTP client with its own login, like a browser.
func page(t *testing.T, u *cluster.User) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	login, _ := json.Marshal(object{"email": u.Email, "password": u.Password})
	resp, body := exchange(t, browser, "POST", platform.URL+"/auth/login", string(login), "Content-Type", "application/json", "X-Berth-CSRF", "1")
	if resp.StatusCode != 200 {
		t.Fatalf("login: %s %s", resp.Status, body)
	}
	for _, c := range resp.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
			t.Errorf("cookie %+v", c)
		}
	}
	return browser
}

// ownOrigin is the header that a browser sends from pages of the platform.
func ownOrigin() http.Header { return http.Header{"Origin": {platform.URL}} }

func terminalOf(t *testing.T, ctx context.Context, browser *http.Client, session string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(ctx, platform.URL+"/sessions/"+session+"/terminal", &websocket.DialOptions{HTTPClient: browser, HTTPHeader: ownOrigin()})
	if err != nil {
		t.Fatalf("terminal of a page: %v", err)
	}
	t.Cleanup(func() { c.CloseNow() })
	if _, _, err := c.Read(ctx); err != nil {
		t.Fatalf("terminal of a page: %v", err)
	}
	return c
}

// drain reads until the connection ends, and returns the reason.
func drain(ctx context.Context, c *websocket.Conn) string {
	for {
		if _, _, err := c.Read(ctx); err != nil {
			return err.Error()
		}
	}
}

// graphqlSocket subscribes over graphql-transport-ws, as browsers do.
func graphqlSocket(t *testing.T, ctx context.Context, o *websocket.DialOptions, authorization, session string) *websocket.Conn {
	t.Helper()
	if o == nil {
		o = &websocket.DialOptions{}
	}
	o.Subprotocols = []string{"graphql-transport-ws"}
	c, _, err := websocket.Dial(ctx, platform.URL+"/graphql", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	for _, m := range []object{
		{"type": "connection_init", "payload": object{"authorization": authorization}},
		{"type": "subscribe", "id": "1", "payload": object{"query": `subscription($id: ID) { sessionChanged(id: $id) { id } }`, "variables": object{"id": session}}},
	} {
		if err := wsjson.Write(ctx, c, m); err != nil {
			t.Fatal(err)
		}
	}
	for {
		var m struct{ Type string }
		if err := wsjson.Read(ctx, c, &m); err != nil {
			t.Fatalf("subscription over WebSocket: %v", err)
		}
		switch m.Type {
		case "next":
			return c
		case "error":
			t.Fatal("subscription over WebSocket is refused")
		}
	}
}

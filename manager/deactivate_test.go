package manager_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// until waits until a connection is cut off, and returns how long that took.
func until(t *testing.T, what string, began time.Time, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err == nil {
			t.Errorf("%s went through to its end", what)
		}
		t.Logf("%s ended after %s", what, time.Since(began).Round(time.Millisecond))
	case <-time.After(managertest.Timeout):
		t.Errorf("%s continues", what)
	}
}

// subscribed opens a WebSocket that subscribes to all sessions, and reads it until its end.
func subscribed(t *testing.T, c *managertest.Client) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*managertest.Timeout)
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(c.URL, "http")+"/graphql", &websocket.DialOptions{
		HTTPHeader: c.Header.Clone(), Subprotocols: []string{"graphql-transport-ws"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	send := func(m any) {
		if err := wsjson.Write(ctx, conn, m); err != nil {
			t.Fatal(err)
		}
	}
	send(map[string]string{"type": "connection_init"})
	var m struct{ Type string }
	if err := wsjson.Read(ctx, conn, &m); err != nil || m.Type != "connection_ack" {
		t.Fatal(m, err)
	}
	send(map[string]any{"type": "subscribe", "id": "1", "payload": map[string]string{"query": "subscription { sessionChanged { id } }"}})
	ended := make(chan error, 1)
	go func() {
		for {
			if err := wsjson.Read(ctx, conn, &m); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// streamed is the same over server-sent events.
func streamed(t *testing.T, c *managertest.Client) <-chan error {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", c.URL+"/graphql", strings.NewReader(`{"query":"subscription { sessionChanged { id } }"}`))
	r.Header = c.Header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	ended := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
		}
		ended <- fmt.Errorf("the stream ends: %v", lines.Err())
	}()
	return ended
}

// slowUpload begins an upload that sends only a part of the file, and waits until that part has
// arrived.
func slowUpload(t *testing.T, d *clustertest.Proxy, as *managertest.Client, folder uuid.UUID) (ended <-chan error, again func() int) {
	t.Helper()
	var up struct {
		CreateUpload struct {
			Uploads []struct{ URL, Ticket string }
		}
	}
	as.Must(t, `mutation($id: ID!) { createUpload(input: {vfolder: $id, files: [{path: "slow", size: 1000}]}) { uploads { url ticket } } }`,
		managertest.Vars{"id": folder}, &up)
	to := up.CreateUpload.Uploads[0]
	ask := func(method, url string, body io.Reader, header ...string) (*http.Response, error) {
		r, _ := http.NewRequestWithContext(t.Context(), method, url, body)
		r.Header.Set("Authorization", "Bearer "+to.Ticket)
		r.Header.Set("Tus-Resumable", "1.0.0")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		return resp, err
	}
	resp, err := ask("POST", to.URL, nil, "Upload-Length", "1000")
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal(resp, err)
	}
	at, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	read, write := io.Pipe()
	t.Cleanup(func() { write.CloseWithError(io.ErrClosedPipe) })
	out := make(chan error, 1)
	go func() {
		resp, err := ask("PATCH", at.String(), read, "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
		if err == nil && resp.StatusCode != http.StatusNoContent {
			err = fmt.Errorf("%s", resp.Status)
		}
		out <- err
	}()
	if _, err := write.Write([]byte("0123456789")); err != nil { // read by the transport
		t.Fatal(err)
	}
	return out, func() int {
		resp, err := ask("POST", to.URL, nil, "Upload-Length", "1000")
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
}

// A deactivated user loses access at once: their token and their cookie are rejected, and open
// connections are closed, including an upload to a storage proxy.
func TestDeactivatedIsCutOff(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	root := c.Manager.As(t, c.Superadmin)
	set := func(who *ent.User, status string) {
		root.Must(t, `mutation($u: ID!, $s: UserStatus!) { updateUser(input: {id: $u, status: $s}) { user { id } } }`,
			managertest.Vars{"u": who.ID, "s": status}, nil)
	}
	var made struct{ CreateAccessToken struct{ Secret string } }
	c.Member.Must(t, `mutation { createAccessToken(input: {name: "live"}) { secret } }`, nil, &made)
	token := c.Manager.Anonymous()
	token.Header.Set("Authorization", "Bearer "+made.CreateAccessToken.Secret)
	folderOf := func(as *managertest.Client) uuid.UUID {
		id, errs := clustertest.CreateFolder(t, as, managertest.Vars{"name": "data"})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return id
	}
	lead := c.Manager.As(t, c.A.Lead)
	mine, theirs := folderOf(c.Member), folderOf(lead)
	upload, again := slowUpload(t, d, c.Member, mine)
	other, otherAgain := slowUpload(t, d, lead, theirs)
	open := map[string]<-chan error{
		"the socket of the cookie": subscribed(t, c.Member), "the socket of the token": subscribed(t, token),
		"the stream of the cookie": streamed(t, c.Member), "the upload": upload,
	}
	stays := subscribed(t, lead)

	began := time.Now()
	set(c.A.Member, "INACTIVE")
	for name, as := range map[string]*managertest.Client{"token": token, "cookie": c.Member} {
		if status, body := as.Post(t, "/graphql", "application/json", []byte(`{"query":"{ viewer { due } }"}`)); status != http.StatusUnauthorized &&
			!strings.Contains(string(body), "UNAUTHENTICATED") {
			t.Errorf("the %s: %d %s", name, status, body)
		}
	}
	for what, ended := range open {
		until(t, what, began, ended)
	}
	if status := again(); status != http.StatusForbidden {
		t.Errorf("the ticket again: %d", status)
	}
	select {
	case err := <-stays:
		t.Errorf("another's socket ended: %v", err)
	case err := <-other:
		t.Errorf("another's upload ended: %v", err)
	default:
	}
	if status := otherAgain(); status >= 400 {
		t.Errorf("another's ticket: %d", status)
	}

	// Back again, the same ticket counts.
	set(c.A.Member, "ACTIVE")
	managertest.Eventually(t, "the ticket counts again", func() bool { return again() != http.StatusForbidden })

	// A purged user cannot use a ticket.
	purged := c.Client.User.Create().SetEmail("purged@example.org").SetUsername("purged").SetPasswordHash(c.A.Member.PasswordHash).
		SetDomainID(c.A.ID).SaveX(c.System(t))
	c.Client.Membership.Create().SetUser(purged).SetProject(c.A.Project).ExecX(c.System(t))
	project, errs := clustertest.CreateFolder(t, root, managertest.Vars{"name": "common", "project": c.A.Project.ID})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	_, purgedAgain := slowUpload(t, d, c.Manager.As(t, purged), project)
	set(purged, "INACTIVE")
	managertest.Eventually(t, "the user's ticket is rejected", func() bool { return purgedAgain() == http.StatusForbidden })
	root.Must(t, `mutation($u: ID!) { deleteUser(input: {id: $u}) { __typename } }`, managertest.Vars{"u": purged.ID}, nil)
	managertest.Eventually(t, "the user is removed", func() bool { return !c.Client.User.Query().Where(user.ID(purged.ID)).ExistX(c.System(t)) })
	set(c.A.Member, "INACTIVE") // the proxy is notified after the user was purged
	managertest.Eventually(t, "another's ticket is refused", func() bool { return again() == http.StatusForbidden })
	if status := purgedAgain(); status != http.StatusForbidden {
		t.Errorf("the ticket of a purged user: %d", status)
	}
	set(c.A.Member, "ACTIVE")

	// A former admin of a project gets no more events of others' sessions.
	began = time.Now()
	root.Must(t, `mutation($p: ID!, $u: ID!) { addMembership(input: {project: $p, user: $u, admin: false}) { project { id } } }`,
		managertest.Vars{"p": c.A.Project.ID, "u": c.A.Lead.ID}, nil)
	until(t, "the socket of a former project admin", began, stays)

	// A domain that is closed shuts out all its people.
	elsewhere := c.Manager.As(t, c.B.Member)
	root.Must(t, `mutation($d: ID!) { updateDomain(input: {id: $d, active: false}) { domain { id } } }`, managertest.Vars{"d": c.B.ID}, nil)
	if errs := ask(t, elsewhere, `{ viewer { due } }`); errs != "UNAUTHENTICATED" {
		t.Errorf("of a closed domain: %q", errs)
	}
}

// ask returns the error code of the answer, from GraphQL or from the authentication.
func ask(t *testing.T, c *managertest.Client, query string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"query": query})
	_, text := c.Post(t, "/graphql", "application/json", body)
	var out struct {
		Code   string
		Errors managertest.Errors
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	if out.Code != "" {
		return out.Code
	}
	return out.Errors.Code()
}

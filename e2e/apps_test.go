package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// visitor is an HTTP client that behaves like a browser: it resolves the hosts of apps as browsers
// do, follows no redirect, and keeps the cookies that the test gives it.
type visitor struct {
	t    *testing.T
	base string // of the platform
}

func (v visitor) get(address string, header http.Header) (*http.Response, string) {
	v.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		v.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.base+u.RequestURI(), nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Host = u.Host
	for name, values := range header {
		r.Header[name] = values
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp, string(body)
}

// open returns the body of an answer that does not end.
func (v visitor) open(address string, header http.Header) io.Reader {
	v.t.Helper()
	u := mustParse(v.t, address)
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.base+u.RequestURI(), nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Host, r.Header = u.Host, header
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { resp.Body.Close() })
	return resp.Body
}

// query sends a GraphQL request, and returns the code of its first error.
func query(t *testing.T, u *cluster.User, text string, vars map[string]any, into any) string {
	t.Helper()
	resp, err := u.Raw(t.Context(), client.Request{Query: text, Variables: vars})
	if err != nil {
		t.Fatal(err)
	}
	var failed *client.Error
	if err := resp.Err(); err != nil {
		if !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return failed.Code
	}
	if into != nil {
		if err := json.Unmarshal(resp.Data, into); err != nil {
			t.Fatal(err)
		}
	}
	return ""
}

type appState struct {
	Name, Status, Source, Reason string
	Startable                    bool
}

func appsOf(t *testing.T, u *cluster.User, session string) map[string]appState {
	t.Helper()
	var got struct{ Node struct{ Apps []appState } }
	if code := query(t, u, `query($id: ID!) { node(id: $id) { ... on Session { apps { name status source reason startable } } } }`, map[string]any{"id": session}, &got); code != "" {
		t.Fatalf("apps: %s", code)
	}
	m := map[string]appState{}
	for _, a := range got.Node.Apps {
		m[a.Name] = a
	}
	return m
}

func openApp(t *testing.T, u *cluster.User, session, app string) (address, code string) {
	t.Helper()
	var got struct{ OpenApp struct{ URL, Address string } }
	code = query(t, u, `mutation($in: OpenAppInput!) { openApp(input: $in) { url address } }`,
		map[string]any{"in": map[string]any{"session": session, "app": app, "path": "/index.html?x=1"}}, &got)
	return got.OpenApp.URL, code
}

// A user opens apps of their session in the browser, shares one of them, and ends the session.
func TestAppsOfASession(t *testing.T) {
	u, stranger := platform.User(t), platform.User(t)
	v := visitor{t, platform.URL}
	var made struct {
		CreateSession struct{ Session struct{ ID string } }
	}
	if code := query(t, u, `mutation($in: CreateSessionInput!) { createSession(input: $in) { session { id } } }`, map[string]any{"in": map[string]any{
		"image": "minimal:1", "slots": cluster.Small(), "apps": []map[string]any{
			{"name": "docs", "port": 8000, "command": []string{"sh", "-c", "echo $WORD > /tmp/index.html; mkdir -p /tmp/cgi-bin; printf '#!/bin/sh\\ntrap \"\" TERM HUP INT\\necho; while :; do echo more; sleep 0.2; done' > /tmp/cgi-bin/stream; chmod +x /tmp/cgi-bin/stream; exec httpd -f -p 127.0.0.1:{port} -h /tmp"}, "environment": map[string]string{"WORD": "hello"}},
			{"name": "broken", "port": 9000, "command": []string{"sh", "-c", "echo oops; exit 7"}},
		},
	}}, &made); code != "" {
		t.Fatalf("create session: %s", code)
	}
	id := made.CreateSession.Session.ID
	u.Until(id, "RUNNING")
	if got := appsOf(t, u, id); got["docs"] != (appState{"docs", "STOPPED", "SESSION", "", true}) || len(got) != 2 {
		t.Errorf("apps: %+v", got)
	}
	if _, code := openApp(t, stranger, id, "docs"); code != "NOT_FOUND" {
		t.Errorf("another user opens an app: %q", code)
	}

	address, code := openApp(t, u, id, "docs")
	if code != "" {
		t.Fatalf("open app: %s", code)
	}
	elsewhere, _ := openApp(t, u, id, "docs")
	if resp, _ := v.get(strings.Replace(elsewhere, "docs--", "broken--", 1), nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a ticket on the host of another app: %s", resp.Status)
	}
	resp, _ := v.get(address, nil)
	cookies := resp.Cookies()
	if resp.Header.Get("Referrer-Policy") != "no-referrer" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the address with the ticket can be kept or passed on: %v", resp.Header)
	}
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/index.html?x=1" || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].Domain != "" {
		t.Fatalf("%s to %q with %v", resp.Status, resp.Header.Get("Location"), cookies)
	}
	if resp, _ := v.get(address, nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a ticket that was used: %s", resp.Status)
	}
	root := strings.SplitAfter(address, ".localhost")[0] + ":" + mustParse(t, platform.URL).Port()
	entered := http.Header{"Cookie": {cookies[0].Name + "=" + cookies[0].Value}}
	// The request waits until the app has started.
	if resp, body := v.get(root+"/index.html", entered); resp.StatusCode != http.StatusOK || body != "hello\n" {
		t.Fatalf("the app: %s %q", resp.Status, body)
	}
	eventually(t, "the status", func() bool { return appsOf(t, u, id)["docs"].Status == "RUNNING" })

	t.Run("without a cookie", func(t *testing.T) {
		if resp, _ := v.get(root+"/index.html", nil); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a program: %s", resp.Status)
		}
		resp, _ := v.get(root+"/index.html", http.Header{"Accept": {"text/html"}})
		if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, platform.URL+"/apps/open?") {
			t.Errorf("a person: %s to %s", resp.Status, to)
		}
	})
	t.Run("broken", func(t *testing.T) {
		bearer := http.Header{"Authorization": {"Bearer " + u.Token}, "Accept": {"text/html"}}
		resp, body := v.get(strings.Replace(root, "docs--", "broken--", 1)+"/", bearer)
		for resp.StatusCode == http.StatusOK && strings.Contains(body, "is starting") { // the wait page
			resp, body = v.get(strings.Replace(root, "docs--", "broken--", 1)+"/", bearer)
		}
		if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "oops") || !strings.Contains(body, "exit code 7") {
			t.Errorf("%s: %s", resp.Status, body)
		}
		eventually(t, "the status", func() bool {
			got := appsOf(t, u, id)["broken"]
			return got.Status == "FAILED" && strings.Contains(got.Reason, "exit code 7")
		})
	})
	t.Run("the page of an app calls the API", func(t *testing.T) {
		for _, path := range []string{"/graphql", "/apps/open", "/storage/"} {
			resp, _ := v.get(platform.URL+path, http.Header{
				"Origin": {root}, "Authorization": {"Bearer " + u.Token}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"},
				"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"graphql-transport-ws"},
			})
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("a WebSocket to %s: %s", path, resp.Status)
			}
		}
		resp, _ := v.get(platform.URL+"/graphql?query={viewer{id}}", http.Header{"Origin": {root}, "Authorization": {"Bearer " + u.Token}})
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s", resp.Status)
		}
	})
	t.Run("shared", func(t *testing.T) {
		bearer := http.Header{"Authorization": {"Bearer " + stranger.Token}}
		status := func() int { resp, _ := v.get(root+"/index.html", bearer); return resp.StatusCode }
		if got := status(); got != http.StatusNotFound {
			t.Errorf("before: %d", got)
		}
		share := `mutation($id: ID!, $to: AppAudience!) { shareApp(input: {session: $id, app: "docs", audience: $to}) { app { sharing { audience } } } }`
		if code := query(t, u, share, map[string]any{"id": id, "to": "PROJECT"}, nil); code != "" {
			t.Fatalf("share: %s", code)
		}
		if got := status(); got != http.StatusNotFound {
			t.Errorf("somebody outside of the project: %d", got)
		}
		if code := query(t, u, share, map[string]any{"id": id, "to": "EVERYONE"}, nil); code != "" {
			t.Fatalf("share: %s", code)
		}
		if got := status(); got != http.StatusOK {
			t.Errorf("shared with everyone: %d", got)
		}
		if code := query(t, stranger, `mutation($id: ID!) { stopApp(input: {session: $id, app: "docs"}) { app { name } } }`, map[string]any{"id": id}, nil); code == "" {
			t.Error("a guest ends the app")
		}
		if code := query(t, u, `mutation($id: ID!) { unshareApp(input: {session: $id, app: "docs"}) { app { name } } }`, map[string]any{"id": id}, nil); code != "" {
			t.Fatalf("unshare: %s", code)
		}
		eventually(t, "the end of the share", func() bool { return status() == http.StatusNotFound })
	})
	t.Run("public", func(t *testing.T) { publicApp(t, u, v, id, root) })
	stream := v.open(root+"/cgi-bin/stream", entered)
	if line, err := bufio.NewReader(stream).ReadString('\n'); err != nil || line != "more\n" {
		t.Fatalf("the stream: %q, %v", line, err)
	}
	began := time.Now()
	ended := make(chan struct{})
	go func() { defer close(ended); u.End(id) }()
	_, err := io.Copy(io.Discard, stream)
	t.Logf("the stream ended %s after the request to terminate the session: %v", time.Since(began), err)
	<-ended
	eventually(t, "the end of the app", func() bool {
		resp, _ := v.get(root+"/index.html", entered)
		return resp.StatusCode >= http.StatusBadRequest
	})
}

// publicApp shares an app with everyone, if a policy allows it.
func publicApp(t *testing.T, u *cluster.User, v visitor, session, root string) {
	admin := platform.UserAs(t, "superadmin")
	status := func() int { resp, _ := v.get(root+"/index.html", nil); return resp.StatusCode }
	share := func(more map[string]any) string {
		in := map[string]any{"session": session, "app": "docs", "audience": "PUBLIC"}
		for k, v := range more {
			in[k] = v
		}
		return query(t, u, `mutation($in: ShareAppInput!) { shareApp(input: $in) { app { sharing { audience expiresAt } } } }`, map[string]any{"in": in}, nil)
	}
	if code := share(nil); code != "PERMISSION_DENIED" {
		t.Errorf("without a policy: %q", code)
	}
	var made struct {
		CreateResourcePolicy struct{ Policy struct{ ID string } }
	}
	if code := query(t, admin, `mutation { createResourcePolicy(input: {name: "public-apps", maxPublicAppTime: 3600}) { policy { id } } }`, nil, &made); code != "" {
		t.Fatal(code)
	}
	policy := made.CreateResourcePolicy.Policy.ID
	if code := query(t, admin, `mutation($p: ID!, $u: ID!) { attachResourcePolicy(input: {policy: $p, user: $u}) { __typename } }`, map[string]any{"p": policy, "u": u.ID}, nil); code != "" {
		t.Fatal(code)
	}
	if code := share(map[string]any{"expiresAt": time.Now().Add(2 * time.Hour)}); code != "INVALID_ARGUMENT" {
		t.Errorf("for longer than the policy allows: %q", code)
	}
	if code := share(map[string]any{"networks": []string{"192.0.2.0/24"}}); code != "" {
		t.Fatalf("share: %s", code)
	}
	if got := status(); got != http.StatusUnauthorized {
		t.Errorf("from another network: %d", got)
	}
	if code := share(nil); code != "" {
		t.Fatalf("share: %s", code)
	}
	eventually(t, "everybody opens the app", func() bool { return status() == http.StatusOK })
	resp, _ := v.get(strings.Replace(root, "docs--", "broken--", 1)+"/", nil)
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("another app of the session: %s", resp.Status)
	}
	var log struct {
		AuditEntries struct {
			Edges []struct {
				Node struct{ Action, ActorEmail, Message string }
			}
		}
	}
	if code := query(t, admin, `query($id: ID!) { auditEntries(first: 100, where: {action: "enterApp", entityID: $id}) { edges { node { action actorEmail message } } } }`, map[string]any{"id": session}, &log); code != "" {
		t.Fatal(code)
	}
	strangers := 0
	for _, e := range log.AuditEntries.Edges {
		if e.Node.ActorEmail == "" && e.Node.Message == "docs" {
			strangers++
		}
	}
	if strangers != 1 {
		t.Errorf("%d entries without a user in %+v", strangers, log)
	}
	stream := v.open(root+"/cgi-bin/stream", http.Header{})
	if line, err := bufio.NewReader(stream).ReadString('\n'); err != nil || line != "more\n" {
		t.Errorf("the stream of a visitor: %q, %v", line, err)
	}
	if code := query(t, admin, `mutation($p: ID!) { updateResourcePolicy(input: {id: $p, maxPublicAppTime: 0}) { policy { id } } }`, map[string]any{"p": policy}, nil); code != "" {
		t.Fatal(code)
	}
	began := time.Now()
	_, err := io.Copy(io.Discard, stream)
	t.Logf("the stream of a visitor ended %s after the policy: %v", time.Since(began), err)
	if got := status(); got != http.StatusUnauthorized {
		t.Errorf("after the policy no longer allows it: %d", got)
	}
	if code := share(nil); code != "PERMISSION_DENIED" {
		t.Errorf("while a policy forbids it: %q", code)
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(cluster.Timeout); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout: %s", what)
		}
	}
}

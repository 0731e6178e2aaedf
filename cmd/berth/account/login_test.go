package account

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestLoginAndLogout(t *testing.T) {
	f := newServer(t)
	var password, revoked string
	loggedIn := false
	f.Rest = func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/auth/login":
			var body struct{ Email, Password string }
			_ = json.NewDecoder(r.Body).Decode(&body)
			password = body.Password
			if password != "right" {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"detail":"wrong e-mail or password","code":"UNAUTHENTICATED"}`)
				return
			}
			loggedIn = true
			fmt.Fprint(w, `{"user":{"email":"a@b"}}`)
		case "/auth/logout":
			loggedIn = false
			w.WriteHeader(http.StatusNoContent)
		}
	}
	f.Data("Viewer", `{"viewer":{"user":{"email":"a@b","role":"USER","domain":{"name":"lab"}},"initialPassword":true,"projects":[{"id":"p","name":"vision"}]}}`)
	n := 0
	f.Answer["CreateAccessToken"] = func(vars json.RawMessage) string {
		if !strings.Contains(string(vars), `"expiresAt":"2026-06-02T12:00:00Z"`) {
			t.Errorf("token without the right end: %s", vars)
		}
		n++
		return fmt.Sprintf(`{"payload":{"accessToken":{"id":"token-%d","prefix":"b"},"secret":"secret-%d"}}`, n, n)
	}
	f.Answer["RevokeAccessToken"] = func(vars json.RawMessage) string {
		revoked = string(vars)
		return `{"payload":{"accessToken":{"id":"x"}}}`
	}
	made := `[]`
	noKeys(f, &made)
	home := t.TempDir()
	env := map[string]string{"HOME": home}

	if r := f.RunWith(env, "wrong\n", "login", f.URL, "--email", "a@b", "--password-stdin"); r.Code != cli.ExitDenied || !strings.Contains(r.Errors, "wrong e-mail or password") {
		t.Fatalf("wrong password: %+v", r)
	}
	r := f.RunWith(env, "right\n", "login", f.URL, "--email", "a@b", "--password-stdin")
	if r.Code != 0 || !strings.Contains(r.Errors, "berth passwd") || loggedIn {
		t.Fatalf("login: %+v, login left open: %v", r, loggedIn)
	}
	file := filepath.Join(home, ".config/berth/config.yaml")
	saved, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(saved), "secret-1") || strings.Contains(string(saved), "right") {
		t.Fatalf("saved %v:\n%s", err, saved)
	}
	if r := f.RunWith(env, "", "whoami"); r.Code != 0 || !strings.Contains(r.Out, "a@b") {
		t.Errorf("whoami: %+v", r)
	}
	// A second login replaces the token and ends the first one.
	env["BERTH_PASSWORD"] = "right"
	if r := f.RunWith(env, "", "login", "--email", "a@b"); r.Code != 0 || !strings.Contains(revoked, "token-1") {
		t.Errorf("second login: %+v, revoked %s", r, revoked)
	}
	if r := f.RunWith(env, "", "context", "ls", "-o", "json"); r.Code != 0 || strings.Contains(r.Out, "secret") || !strings.Contains(r.Out, `"current": true`) {
		t.Errorf("context ls: %+v", r)
	}
	// A login does not end a token with which other credentials were created.
	made = `[{"node":{"id":"k","name":"robot","makerID":"token-2","status":"ACTIVE"}}]`
	if r := f.RunWith(env, "", "login", "--email", "a@b"); r.Code != 0 || strings.Contains(revoked, "token-2") || !strings.Contains(r.Errors, "berth token revoke token-2") {
		t.Errorf("third login: %+v, revoked %s", r, revoked)
	}
	made = `[{"node":{"id":"k","name":"robot","makerID":"token-3","status":"ACTIVE"}}]`
	if r := f.RunWith(env, "", "logout"); r.Code != 0 || !strings.Contains(revoked, "token-3") || !strings.Contains(r.Errors, "end too: 1") {
		t.Errorf("logout: %+v, revoked %s", r, revoked)
	}
	if saved, _ := os.ReadFile(file); strings.Contains(string(saved), "secret") {
		t.Errorf("logout left the token behind:\n%s", saved)
	}
}

// noKeys answers requests for the credentials that were created with a token: pairs are the edges
// of its keypairs, and it has no others.
func noKeys(f *clitest.Server, pairs *string) {
	f.Data("AccessTokens", `{"accessTokens":{"edges":[],"pageInfo":{}}}`)
	f.Data("SSHKeys", `{"sshKeys":{"edges":[],"pageInfo":{}}}`)
	f.Answer["Keypairs"] = func(json.RawMessage) string { return `{"keypairs":{"edges":` + *pairs + `,"pageInfo":{}}}` }
}

// A stored token must not be sent to another server that BERTH_URL names.
func TestStoredTokenStaysHome(t *testing.T) {
	f := newServer(t)
	f.Data("Viewer", `{"viewer":{"user":{"email":"a@b"}}}`)
	config := filepath.Join(t.TempDir(), "config.yaml")
	env := map[string]string{"BERTH_CONFIG": config}
	if r := f.RunWith(env, "tok\n", "login", f.URL, "--token", "-"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	env["BERTH_URL"] = "http://127.0.0.1:1"
	if r := f.RunWith(env, "", "whoami"); r.Code != cli.ExitDenied {
		t.Errorf("another server: %+v", r)
	}
	env["BERTH_URL"] = f.URL + "/"
	if r := f.RunWith(env, "", "whoami"); r.Code != 0 {
		t.Errorf("the same server: %+v", r)
	}
}

// A server recognizes the device at its next login, even after a logout. No other server gets the
// device's cookie.
func TestLoginsAreKnown(t *testing.T) {
	f, other := newServer(t), newServer(t)
	var shown []string
	for server, name := range map[*clitest.Server]string{f: "one", other: "other"} {
		server.Rest = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/auth/login" {
				shown = append(shown, name+" "+r.Header.Get("Cookie"))
				http.SetCookie(w, &http.Cookie{Name: "berth-device", Value: fmt.Sprintf("of-%s-%d", name, len(shown))})
				fmt.Fprint(w, `{"user":{"email":"a@b"}}`)
			}
		}
		server.Data("Viewer", `{"viewer":{"user":{"email":"a@b"}}}`)
		server.Data("CreateAccessToken", `{"payload":{"accessToken":{"id":"t"},"secret":"s"}}`)
		server.Data("RevokeAccessToken", `{"payload":{"accessToken":{"id":"t"}}}`)
		none := `[]`
		noKeys(server, &none)
	}
	env := map[string]string{"BERTH_CONFIG": filepath.Join(t.TempDir(), "config.yaml"), "BERTH_PASSWORD": "p"}
	for _, args := range [][]string{{"login", f.URL, "--email", "a@b"}, {"logout"}, {"login", other.URL, "--email", "a@b"}, {"login", f.URL, "--email", "a@b"}} {
		if r := f.RunWith(env, "", args...); r.Code != 0 {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	if got, want := strings.Join(shown, ", "), "one , other , one berth-device=of-one-1"; got != want {
		t.Errorf("servers were shown %q, want %q", got, want)
	}
}

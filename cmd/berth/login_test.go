package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoginAndLogout(t *testing.T) {
	f := newFake(t)
	var password, revoked string
	loggedIn := false
	f.rest = func(w http.ResponseWriter, r *http.Request) {
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
	f.data("Viewer", `{"viewer":{"user":{"email":"a@b","role":"user","domain":{"name":"lab"}},"initialPassword":true,"projects":[{"id":"p","name":"vision"}]}}`)
	n := 0
	f.answer["CreateAccessToken"] = func(vars json.RawMessage) string {
		if !strings.Contains(string(vars), `"expiresAt":"2026-06-02T12:00:00Z"`) {
			t.Errorf("token without the right end: %s", vars)
		}
		n++
		return fmt.Sprintf(`{"payload":{"accessToken":{"id":"token-%d","prefix":"b"},"secret":"secret-%d"}}`, n, n)
	}
	f.answer["RevokeAccessToken"] = func(vars json.RawMessage) string {
		revoked = string(vars)
		return `{"payload":{"accessToken":{"id":"x"}}}`
	}
	made := `[]`
	f.noKeys(&made)
	home := t.TempDir()
	env := map[string]string{"HOME": home}

	if r := f.with(env, "wrong\n", "login", f.url, "--email", "a@b", "--password-stdin"); r.code != exitDenied || !strings.Contains(r.errors, "wrong e-mail or password") {
		t.Fatalf("wrong password: %+v", r)
	}
	r := f.with(env, "right\n", "login", f.url, "--email", "a@b", "--password-stdin")
	if r.code != 0 || !strings.Contains(r.errors, "berth passwd") || loggedIn {
		t.Fatalf("login: %+v, login left open: %v", r, loggedIn)
	}
	file := filepath.Join(home, ".config/berth/config.yaml")
	saved, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(saved), "secret-1") || strings.Contains(string(saved), "right") {
		t.Fatalf("saved %v:\n%s", err, saved)
	}
	if r := f.with(env, "", "whoami"); r.code != 0 || !strings.Contains(r.out, "a@b") {
		t.Errorf("whoami: %+v", r)
	}
	// A second login replaces the token and ends the first one.
	env["BERTH_PASSWORD"] = "right"
	if r := f.with(env, "", "login", "--email", "a@b"); r.code != 0 || !strings.Contains(revoked, "token-1") {
		t.Errorf("second login: %+v, revoked %s", r, revoked)
	}
	if r := f.with(env, "", "context", "ls", "-o", "json"); r.code != 0 || strings.Contains(r.out, "secret") || !strings.Contains(r.out, `"current": true`) {
		t.Errorf("context ls: %+v", r)
	}
	// A token with which others were made is not ended by a login.
	made = `[{"node":{"id":"k","name":"robot","makerID":"token-2","status":"active"}}]`
	if r := f.with(env, "", "login", "--email", "a@b"); r.code != 0 || strings.Contains(revoked, "token-2") || !strings.Contains(r.errors, "berth token revoke token-2") {
		t.Errorf("third login: %+v, revoked %s", r, revoked)
	}
	made = `[{"node":{"id":"k","name":"robot","makerID":"token-3","status":"active"}}]`
	if r := f.with(env, "", "logout"); r.code != 0 || !strings.Contains(revoked, "token-3") || !strings.Contains(r.errors, "end too: 1") {
		t.Errorf("logout: %+v, revoked %s", r, revoked)
	}
	if saved, _ := os.ReadFile(file); strings.Contains(string(saved), "secret") {
		t.Errorf("logout left the token behind:\n%s", saved)
	}
}

// noKeys answers what was made with a token: keypairs, as edges of their list, and
// nothing else.
func (f *fake) noKeys(pairs *string) {
	f.data("AccessTokens", `{"accessTokens":{"edges":[],"pageInfo":{}}}`)
	f.data("SSHKeys", `{"sshKeys":[]}`)
	f.answer["Keypairs"] = func(json.RawMessage) string { return `{"keypairs":{"edges":` + *pairs + `,"pageInfo":{}}}` }
}

// A stored token must not go to another server that BERTH_URL names.
func TestStoredTokenStaysHome(t *testing.T) {
	f := newFake(t)
	f.data("Viewer", `{"viewer":{"user":{"email":"a@b"}}}`)
	config := filepath.Join(t.TempDir(), "config.yaml")
	env := map[string]string{"BERTH_CONFIG": config}
	if r := f.with(env, "tok\n", "login", f.url, "--token", "-"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	env["BERTH_URL"] = "http://127.0.0.1:1"
	if r := f.with(env, "", "whoami"); r.code != exitDenied {
		t.Errorf("another server: %+v", r)
	}
	env["BERTH_URL"] = f.url + "/"
	if r := f.with(env, "", "whoami"); r.code != 0 {
		t.Errorf("the same server: %+v", r)
	}
}

// A server knows the command at its next login, after a logout too, and no other
// server gets to see by what.
func TestLoginsAreKnown(t *testing.T) {
	f, other := newFake(t), newFake(t)
	var shown []string
	for server, name := range map[*fake]string{f: "one", other: "other"} {
		server.rest = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/auth/login" {
				shown = append(shown, name+" "+r.Header.Get("Cookie"))
				http.SetCookie(w, &http.Cookie{Name: "berth-device", Value: fmt.Sprintf("of-%s-%d", name, len(shown))})
				fmt.Fprint(w, `{"user":{"email":"a@b"}}`)
			}
		}
		server.data("Viewer", `{"viewer":{"user":{"email":"a@b"}}}`)
		server.data("CreateAccessToken", `{"payload":{"accessToken":{"id":"t"},"secret":"s"}}`)
		server.data("RevokeAccessToken", `{"payload":{"accessToken":{"id":"t"}}}`)
		none := `[]`
		server.noKeys(&none)
	}
	env := map[string]string{"BERTH_CONFIG": filepath.Join(t.TempDir(), "config.yaml"), "BERTH_PASSWORD": "p"}
	for _, args := range [][]string{{"login", f.url, "--email", "a@b"}, {"logout"}, {"login", other.url, "--email", "a@b"}, {"login", f.url, "--email", "a@b"}} {
		if r := f.with(env, "", args...); r.code != 0 {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	if got, want := strings.Join(shown, ", "), "one , other , one berth-device=of-one-1"; got != want {
		t.Errorf("servers were shown %q, want %q", got, want)
	}
}

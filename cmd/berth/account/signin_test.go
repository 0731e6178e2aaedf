package account

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
	"github.com/berthhq/berth/internal/signature"
)

// door answers a login that needs a second factor, has too many logins, and must change the
// password.
func door(t *testing.T, f *clitest.Server) (sent *[]map[string]any) {
	t.Helper()
	sent = new([]map[string]any)
	f.Rest = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/auth/logout" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		body := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		*sent = append(*sent, body)
		w.Header().Set("Content-Type", "application/problem+json")
		switch {
		case body["code"] != "123456":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"detail":"a code of the second factor is needed","code":"UNAUTHENTICATED","field":"code"}`)
		case body["force"] != true:
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"detail":"2 logins are open","code":"FAILED_PRECONDITION","field":"force","limit":"2"}`)
		default:
			fmt.Fprint(w, `{"user":{"email":"a@b"},"due":"password"}`)
		}
	}
	due := `"password"`
	f.Answer["ChangePassword"] = func(vars json.RawMessage) string {
		if string(vars) != `{"input":{"current":"old","new":"new-one"}}` {
			t.Errorf("asked for %s", vars)
		}
		due = "null"
		return `{"changePassword":{"viewer":{"initialPassword":false}}}`
	}
	f.Answer["Viewer"] = func(json.RawMessage) string {
		return `{"viewer":{"user":{"email":"a@b"},"projects":[],"due":` + due + `}}`
	}
	f.Answer["CreateAccessToken"] = func(json.RawMessage) string {
		if due != "null" {
			t.Error("a token is created before the required steps")
		}
		return `{"payload":{"accessToken":{"id":"t"},"secret":"s"}}`
	}
	return sent
}

func TestLoginByStages(t *testing.T) {
	f := newServer(t)
	sent := door(t, f)
	env := map[string]string{"HOME": t.TempDir(), "BERTH_PASSWORD": "old"}
	login := func(more ...string) clitest.Result {
		return f.RunWith(env, "", append([]string{"login", f.URL, "--email", "a@b"}, more...)...)
	}
	for _, step := range []struct {
		name  string
		more  []string
		code  int
		hints string
	}{
		{"no code", nil, cli.ExitDenied, "--code"},
		{"a wrong code", []string{"--code", "000000"}, cli.ExitDenied, "second factor"},
		{"no room", []string{"--code", "123456"}, cli.ExitConflict, "--force"},
		{"no new password", []string{"--code", "123456", "--force"}, cli.ExitDenied, "BERTH_NEW_PASSWORD"},
	} {
		if r := login(step.more...); r.Code != step.code || !strings.Contains(r.Errors, step.hints) {
			t.Errorf("%s: %+v", step.name, r)
		}
	}
	if f.Count("POST /auth/logout") != 1 {
		t.Error("the login that could not be finished is left open")
	}
	env["BERTH_NEW_PASSWORD"] = "new-one"
	if r := login("--code", "123456", "--force"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	want := map[string]any{"email": "a@b", "password": "old", "code": "123456", "force": true}
	if diff := cmp.Diff(want, (*sent)[len(*sent)-1]); diff != "" {
		t.Error(diff)
	}
	if r := f.RunWith(env, "", "--as", "c@d", "login", f.URL); r.Code != cli.ExitUsage {
		t.Errorf("a login for another: %+v", r)
	}
}

func TestSignedRequests(t *testing.T) {
	f := newServer(t)
	f.Data("Viewer", `{"viewer":{"user":{"email":"a@b"},"projects":[]}}`)
	asked := 0
	f.Seen = func(r *http.Request, body []byte) {
		asked++
		p, err := signature.Parse(r)
		if err != nil || !p.Verify("bks_1") || p.AccessKey != "BK1" || !p.Matches(body) {
			t.Errorf("%v in %v", err, r.Header)
		}
		if got := r.Header.Get("X-Berth-Act-As"); got != "c@d" {
			t.Errorf("acts as %q", got)
		}
	}
	env := map[string]string{"HOME": t.TempDir(), "BERTH_URL": f.URL, "BERTH_ACCESS_KEY": "BK1", "BERTH_SECRET_KEY": "bks_1"}
	if r := f.RunWith(env, "", "--as", "c@d", "whoami"); r.Code != 0 || asked == 0 {
		t.Errorf("%+v after %d requests", r, asked)
	}
	env["BERTH_TOKEN"] = "secret"
	if r := f.RunWith(env, "", "whoami"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "BERTH_TOKEN") {
		t.Errorf("two credentials: %+v", r)
	}
	delete(env, "BERTH_TOKEN")
	delete(env, "BERTH_SECRET_KEY")
	if r := f.RunWith(env, "", "whoami"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "BERTH_SECRET_KEY") {
		t.Errorf("half a keypair: %+v", r)
	}
}

// A token is not enough to change passwords and second factors.
func TestPasswordTakesALogin(t *testing.T) {
	f := newServer(t)
	f.Data("Viewer", `{"viewer":{"user":{"email":"a@b"},"projects":[]}}`)
	f.Data("ChangePassword", `{"changePassword":{"viewer":{}}}`)
	f.Data("DisableTotp", `{"payload":{"viewer":{}}}`)
	f.Rest = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/auth/logout" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		var sent map[string]any
		_ = json.NewDecoder(r.Body).Decode(&sent)
		if diff := cmp.Diff(map[string]any{"email": "a@b", "password": "old", "code": "1"}, sent); diff != "" {
			t.Error(diff)
		}
		http.SetCookie(w, &http.Cookie{Name: "berth", Value: "in", Path: "/"})
		fmt.Fprint(w, `{"user":{"email":"a@b"}}`)
	}
	f.Seen = func(r *http.Request, body []byte) {
		cookie, _ := r.Cookie("berth")
		byLogin := cookie != nil && r.Header.Get("Authorization") == ""
		if about := !strings.Contains(string(body), "query Viewer"); about != byLogin {
			t.Errorf("by login: %v of %s", byLogin, body)
		}
	}
	env := map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL, "BERTH_PASSWORD": "old"}
	if r := f.RunWith(env, "old\nnew\n", "passwd", "--code", "1"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	if r := f.RunWith(env, "", "totp", "disable", "--code", "1", "--next-code", "2"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	if f.Count("POST /auth/login") != 2 || f.Count("POST /auth/logout") != 2 {
		t.Errorf("logins do not end: %v", f.Calls)
	}
	if r := f.RunWith(env, "old\nnew\n", "--as", "c@d", "passwd"); r.Code != cli.ExitUsage {
		t.Errorf("for another: %+v", r)
	}
}

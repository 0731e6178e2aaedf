package account

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/clitest"
)

// page answers a login on the page: statuses are the answers to the requests for the token.
func page(t *testing.T, f *clitest.Server, statuses ...string) {
	t.Helper()
	f.Data("Viewer", `{"viewer":{"user":{"email":"a@b"}}}`)
	f.Rest = func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/auth/device-login":
			if body["host"] == "" || body["expiresDays"] != 90.0 {
				t.Errorf("began with %v", body)
			}
			fmt.Fprint(w, `{"device_code":"secret-code","user_code":"BCDF-GHJK","verification_uri":"https://b/device","verification_uri_complete":"https://b/device?code=BCDF-GHJK","expires_in":600,"interval":1}`)
		case "/auth/device-token":
			if body["device_code"] != "secret-code" {
				t.Errorf("asked with %v", body)
			}
			now := statuses[0]
			if len(statuses) > 1 {
				statuses = statuses[1:]
			}
			if now == "gone" {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"detail":"code not found","code":"NOT_FOUND"}`)
				return
			}
			fmt.Fprint(w, now)
		}
	}
}

func TestLoginOnThePage(t *testing.T) {
	f := newServer(t)
	page(t, f, `{"status":"pending"}`, `{"status":"done","token":"secret-token","token_id":"t"}`)
	env := map[string]string{"HOME": t.TempDir()}
	r := f.RunWith(env, "", "login", f.URL, "--web")
	if r.Code != 0 || !strings.Contains(r.Errors, "BCDF-GHJK") || !strings.Contains(r.Errors, "https://b/device?code=") || !strings.Contains(r.Errors, "as a@b") {
		t.Fatalf("login --web: %+v", r)
	}
	if strings.Contains(r.Errors+r.Out, "secret-") {
		t.Errorf("a secret is printed: %+v", r)
	}
	if r := f.RunWith(env, "", "whoami"); r.Code != 0 {
		t.Errorf("whoami with the token: %+v", r)
	}
}

func TestLoginOnThePageFails(t *testing.T) {
	for want, status := range map[string]string{"refused on the page": `{"status":"denied"}`, "not confirmed in time": "gone"} {
		f := newServer(t)
		page(t, f, status)
		if r := f.RunWith(map[string]string{"HOME": t.TempDir()}, "", "login", f.URL, "--web"); r.Code == 0 || !strings.Contains(r.Errors, want) {
			t.Errorf("%s: %+v", want, r)
		}
	}
	f := newServer(t)
	if r := f.RunWith(map[string]string{"HOME": t.TempDir()}, "", "login", f.URL, "--web", "--email", "a@b"); r.Code == 0 || !strings.Contains(r.Errors, "--web cannot be used") {
		t.Errorf("with --email: %+v", r)
	}
}

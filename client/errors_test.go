package client

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/containerd/errdefs"
)

// serve starts a server with one handler and returns a client for it.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(s.URL, "secret", "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		kind   string
		body   string
		is     func(error) bool
		want   string
	}{
		"GraphQL error with a limit": {
			200, "application/json",
			`{"data":null,"errors":[{"message":"too many cores","path":["createSession"],"extensions":{"code":"RESOURCE_EXHAUSTED","field":"slots.cpu","limit":8,"requestId":"r1"}}]}`,
			errdefs.IsResourceExhausted, "too many cores (field slots.cpu, limit 8, request r1)",
		},
		"a message that continues from its field": {
			200, "application/json",
			`{"errors":[{"message":"must not be empty","extensions":{"code":"INVALID_ARGUMENT","field":"name"}}]}`,
			errdefs.IsInvalidArgument, "name must not be empty (request from-header)",
		},
		"limit as text, several errors": {
			200, "application/json",
			`{"errors":[{"message":"no\nfraction","extensions":{"code":"INVALID_ARGUMENT","limit":"1.5"}},{"message":"b"}]}`,
			errdefs.IsInvalidArgument, "no fraction, and 1 more (limit 1.5, request from-header)",
		},
		"malformed query": {
			422, "application/json",
			`{"errors":[{"message":"unknown field","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}],"data":null}`,
			errdefs.IsInvalidArgument, "unknown field (request from-header)",
		},
		"problem JSON": {
			401, "application/problem+json",
			`{"title":"Unauthorized","detail":"the token is over","code":"UNAUTHENTICATED","requestId":"r2"}`,
			errdefs.IsUnauthorized, "the token is over (request r2)",
		},
		"bytes as a limit": {
			507, "application/problem+json", `{"detail":"it is full","code":"RESOURCE_EXHAUSTED","limit":20971520}`,
			errdefs.IsResourceExhausted, "it is full (limit 20971520, request from-header)",
		},
		"throttled": {
			429, "application/problem+json", `{"detail":"slow down","code":"RESOURCE_EXHAUSTED"}`,
			errdefs.IsResourceExhausted, "slow down (try again in 7s, request from-header)",
		},
		"proxy without a server": {502, "text/plain", "bad gateway\n", errdefs.IsUnavailable, "502 Bad Gateway: bad gateway (request from-header)"},
		"something else":         {200, "text/html", "<html>", errdefs.IsUnknown, ""},
		"a page not found":       {404, "text/html", "<html>", errdefs.IsNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("X-Request-Id", "from-header")
				if c.status == 429 {
					w.Header().Set("Retry-After", "7")
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := cl.Viewer(t.Context())
			if err == nil || !c.is(err) {
				t.Fatalf("error %v has the wrong class", err)
			}
			if c.want != "" && err.Error() != c.want {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestRequestsAreAuthorized(t *testing.T) {
	var got http.Header
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = io.WriteString(w, `{"data":{"server":{"version":"v1"}}}`)
	})
	if v, err := c.ServerVersion(t.Context()); err != nil || v != "v1" {
		t.Fatalf("version %q, %v", v, err)
	}
	for key, want := range map[string]string{"Authorization": "Bearer secret", "X-Berth-Csrf": "1", "User-Agent": "test"} {
		if got.Get(key) != want {
			t.Errorf("%s: %q, want %q", key, got.Get(key), want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	c, err := New(s.URL, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ServerVersion(t.Context()); !errdefs.IsUnavailable(err) {
		t.Errorf("closed port: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ServerVersion(ctx); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLoginKeepsCookie(t *testing.T) {
	open := false
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cookie, _ := r.Cookie("berth")
		switch {
		case r.Header.Get("Authorization") != "":
			t.Error("a password login sent the token")
		case r.Header.Get("X-Berth-CSRF") == "":
			t.Error("no CSRF header")
		case r.URL.Path == "/auth/login":
			http.SetCookie(w, &http.Cookie{Name: "berth", Value: "c", Path: "/", HttpOnly: true})
			open = true
			_, _ = io.WriteString(w, `{"user":{"id":"1","email":"a@b","role":"USER"},"initialPassword":true,"expiresAt":"2030-01-01T00:00:00Z"}`)
		case cookie == nil || cookie.Value != "c":
			t.Errorf("%s without the cookie", r.URL.Path)
		case r.URL.Path == "/auth/logout":
			open = false
			w.WriteHeader(http.StatusNoContent)
		}
	})
	l, err := c.Login(t.Context(), "a@b", "pw")
	if err != nil || !l.InitialPassword || l.User.Email != "a@b" || !open {
		t.Fatalf("login: %+v, %v", l, err)
	}
	if err := c.Logout(t.Context()); err != nil || open {
		t.Fatalf("logout: %v", err)
	}
}

// The error for a refused connection is short, without the nested errors of Go.
func TestUnreachableIsShort(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	c, err := New(s.URL, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.ServerVersion(t.Context())
	if want := "cannot reach " + s.URL + ": connection refused"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

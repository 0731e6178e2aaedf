package managertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// Client sends requests to one manager as one user.
type Client struct {
	URL    string
	Header http.Header // the credentials
}

// Quiet serves a manager without its loops, so that every statement belongs to a request.
func (w *World) Quiet(t testing.TB) *Manager {
	t.Helper()
	made, web, nodes := w.make(t, func(nodes string) string { return nodes })
	nodes.Close()
	served := made.Handler()
	srv := httptest.NewUnstartedServer(served)
	srv.Listener.Close()
	srv.Listener = web
	srv.Start()
	t.Cleanup(func() {
		srv.Close()
		made.Close()
	})
	return &Manager{Manager: made, URL: srv.URL, Served: served, stop: func() {}}
}

// Scrape returns the metrics at the address for operators.
func (m *Manager) Scrape(t testing.TB) string {
	t.Helper()
	answer := httptest.NewRecorder()
	opsserver.Scrape(m.Metrics()).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("metrics: %d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// Anonymous returns a client without credentials.
func (m *Manager) Anonymous() *Client { return &Client{URL: m.URL, Header: http.Header{}} }

// As returns a client that is logged in as a user.
func (m *Manager) As(t testing.TB, u *ent.User) *Client {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"email": u.Email, "password": identitytest.Password})
	resp, err := http.Post(m.URL+"/auth/login", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("login: %d %s", resp.StatusCode, text)
	}
	c := m.Anonymous()
	cookie := resp.Cookies()[0]
	c.Header.Set("Cookie", cookie.Name+"="+cookie.Value)
	c.Header.Set("X-Berth-CSRF", "1")
	c.Header.Set("Origin", m.URL)
	return c
}

// Error is one error of an answer.
type Error struct {
	Message    string
	Path       []any
	Extensions struct {
		Code, Field, Limit, RequestID string
		Limits                        []map[string]string
	}
}

// Errors of an answer; nil without errors.
type Errors []Error

// Code returns the code of the first error, or "".
func (e Errors) Code() string {
	if len(e) == 0 {
		return ""
	}
	return e[0].Extensions.Code
}

func (e Errors) String() string {
	var out []string
	for _, one := range e {
		out = append(out, fmt.Sprintf("%s %s %s: %s", one.Extensions.Code, one.Extensions.Field, one.Extensions.Limit, one.Message))
	}
	return strings.Join(out, "; ")
}

// Vars are the variables of an operation.
type Vars map[string]any

// Ask sends an operation and decodes its data into out.
func (c *Client) Ask(t testing.TB, query string, vars Vars, out any) Errors {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	if err != nil {
		t.Fatal(err)
	}
	status, text := c.Post(t, "/graphql", "application/json", body)
	var answer struct {
		Data   json.RawMessage
		Errors Errors
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("status %d, not GraphQL: %.300s", status, text)
	}
	if out != nil && len(answer.Data) > 0 && string(answer.Data) != "null" {
		if err := json.Unmarshal(answer.Data, out); err != nil {
			t.Fatalf("%v in %.300s", err, answer.Data)
		}
	}
	return answer.Errors
}

// Must is Ask that fails the test on an error.
func (c *Client) Must(t testing.TB, query string, vars Vars, out any) {
	t.Helper()
	if errs := c.Ask(t, query, vars, out); len(errs) > 0 {
		t.Fatalf("%s\n%s", errs, query)
	}
}

// Post sends a body and returns status and answer.
func (c *Client) Post(t testing.TB, path, contentType string, body []byte) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = c.Header.Clone()
	r.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, text
}

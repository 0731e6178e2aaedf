package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/berthhq/berth/client"
)

// exchange sends one request and returns the response with its body.
func exchange(t *testing.T, c *http.Client, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// Queries that would cost too much are refused before they run.
func TestHostileQueries(t *testing.T) {
	u := platform.User(t)
	nested := func(depth int) string {
		return "{ viewer { user { domain " + strings.Repeat("{ projects(first: 1) { edges { node { domain ", depth/4) + "{ id }" +
			strings.Repeat(" } } } }", depth/4) + " } } }"
	}
	for _, tt := range []struct{ name, query, code, limit string }{
		{"first: 1e9", `{ sessions(first: 1000000000) { totalCount } }`, "INVALID_ARGUMENT", "100"},
		{"first: -1", `{ sessions(first: -1) { totalCount } }`, "INVALID_ARGUMENT", "100"},
		{"depth 50", nested(48), "INVALID_ARGUMENT", "14"},
		{"1,500 aliases", "{" + aliases(1500, "viewer { initialPassword }") + "}", "INVALID_ARGUMENT", "1000"},
		{"100 aliases of a large list", "{" + aliases(100, "sessions(first: 100) { edges { node { kernels { id allocations { id } } } } }") + "}", "INVALID_ARGUMENT", "*"},
		{"a forged cursor", `{ sessions(after: "gqFp2gAk") { totalCount } }`, "INVALID_ARGUMENT", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := refusal(t, u.Client, tt.query, nil)
			got := ""
			if e.Extensions.Limit != nil {
				got = fmt.Sprint(e.Extensions.Limit)
			}
			if e.Extensions.Code != tt.code || tt.limit != "*" && got != tt.limit || tt.limit == "*" && got == "" {
				t.Errorf("%+v; want %s, limit %s", e, tt.code, tt.limit)
			}
		})
	}
	for _, tt := range []struct{ name, query string }{
		{"an unknown field", `{ viewer { secret } }`},
		{"a recursive fragment", `{ viewer { ...a } } fragment a on Viewer { ...b } fragment b on Viewer { ...a }`},
		{"10,000 directives", `{ viewer ` + strings.Repeat("@a", 10_000) + ` { user { id } } }`},
		{"100,000 brackets", strings.Repeat("{a", 100_000)},
		{"nothing", ""},
		{"no number", `{ sessions(first: 1e400) { totalCount } }`},
		{"null for a required field", `mutation { createVfolder(input: {name: null}) { vfolder { id } } }`},
	} {
		t.Run(tt.name, func(t *testing.T) { refusal(t, u.Client, tt.query, nil) })
	}
	t.Run("10 MB", func(t *testing.T) {
		body, _ := json.Marshal(object{"query": "{ viewer { user { id } } }" + strings.Repeat("#", 10<<20)})
		resp, answer := exchange(t, http.DefaultClient, "POST", platform.URL+"/graphql", string(body), "Content-Type", "application/json", "Authorization", "Bearer "+u.Token)
		if resp.StatusCode != http.StatusRequestEntityTooLarge && resp.StatusCode != http.StatusBadRequest {
			t.Errorf("answered %s: %s", resp.Status, answer)
		}
	})
}

func aliases(n int, field string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d: %s ", i, field)
	}
	return b.String()
}

// Requests that a page of another site could make a browser send are refused.
func TestForeignRequests(t *testing.T) {
	u := platform.User(t)
	browser := page(t, u)
	create := `{"query": "mutation { createVfolder(input: {name: \"foreign\"}) { vfolder { id } } }"}`
	for _, tt := range []struct {
		name, method, path, body string
		header                   []string
	}{
		{"without the header against forgery", "POST", "/graphql", create, []string{"Content-Type", "application/json"}},
		{"as text", "POST", "/graphql", create, []string{"Content-Type", "text/plain", "X-Berth-CSRF", "1"}},
		{"as a form", "POST", "/graphql", "query=mutation+%7B+createVfolder%28input%3A+%7Bname%3A+%22foreign%22%7D%29+%7B+vfolder+%7B+id+%7D+%7D+%7D", []string{"Content-Type", "application/x-www-form-urlencoded", "X-Berth-CSRF", "1"}},
		{"by GET", "GET", "/graphql?query=mutation+%7B+createVfolder%28input%3A+%7Bname%3A+%22foreign%22%7D%29+%7B+vfolder+%7B+id+%7D+%7D+%7D", "", []string{"X-Berth-CSRF", "1"}},
		{"a query by GET", "GET", "/graphql?query=%7B+viewer+%7B+user+%7B+id+%7D+%7D+%7D", "", []string{"X-Berth-CSRF", "1"}},
		{"many at once", "POST", "/graphql", "[" + create + "," + create + "]", []string{"Content-Type", "application/json", "X-Berth-CSRF", "1"}},
		{"logout", "POST", "/auth/logout", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := exchange(t, browser, tt.method, platform.URL+tt.path, tt.body, tt.header...)
			if resp.StatusCode < 400 || resp.StatusCode >= 500 {
				t.Errorf("answered %s: %s", resp.Status, body)
			}
		})
	}
	if all, err := u.Folders(t.Context(), client.FolderFilter{}); err != nil || len(all) != 0 {
		t.Errorf("a request of another origin created folders: %v, %v", all, err)
	}
	for _, path := range []string{"/graphql", "/sessions/00000000-0000-7000-8000-000000000000/terminal"} {
		for origin, want := range map[string]int{"https://evil.example": 403, "null": 403} {
			_, resp, err := websocket.Dial(t.Context(), platform.URL+path, &websocket.DialOptions{
				HTTPClient: browser, HTTPHeader: http.Header{"Origin": {origin}}, Subprotocols: []string{"graphql-transport-ws"},
			})
			if err == nil || resp == nil || resp.StatusCode != want {
				t.Errorf("WebSocket to %s from %s: %v, %v; want %d", path, origin, resp, err, want)
			}
		}
	}
	if resp, _ := exchange(t, browser, "GET", platform.URL+"/auth/session", ""); resp.StatusCode != 200 {
		t.Errorf("the login is no longer valid: %s", resp.Status)
	}
}

// A client that guesses passwords is slowed down. The errors are the same for known and unknown
// users.
func TestPasswordGuessing(t *testing.T) {
	victim := platform.User(t)
	answers := map[string]string{}
	for who, email := range map[string]string{"known": victim.Email, "unknown": "nobody-" + victim.Email} {
		for i := range 20 {
			login, _ := json.Marshal(object{"email": email, "password": fmt.Sprintf("guess number %d", i)})
			resp, body := exchange(t, http.DefaultClient, "POST", platform.URL+"/auth/login", string(login), "Content-Type", "application/json", "X-Berth-CSRF", "1")
			var problem struct{ Detail, Code string }
			if err := json.Unmarshal([]byte(body), &problem); err != nil {
				t.Fatalf("%s: %s", resp.Status, body)
			}
			switch {
			case resp.StatusCode == 401 && i < 19:
				answers[who] = problem.Code + problem.Detail
			case resp.StatusCode == 429 && i > 0:
				if resp.Header.Get("Retry-After") == "" || problem.Code != "RESOURCE_EXHAUSTED" {
					t.Errorf("429 with Retry-After %q: %s", resp.Header.Get("Retry-After"), body)
				}
			default:
				t.Errorf("guess %d is answered %s: %s", i, resp.Status, body)
			}
		}
	}
	if answers["known"] != answers["unknown"] || answers["known"] == "" {
		t.Errorf("the answers differ: %q", answers)
	}
	// Tokens stay valid, so that the user keeps access to running sessions.
	if _, err := victim.Viewer(t.Context()); err != nil {
		t.Errorf("the victim's token: %v", err)
	}
}

// An upload must be exactly as long as declared.
func TestUploadLength(t *testing.T) {
	u := platform.User(t)
	f, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "exact"})
	if err != nil {
		t.Fatal(err)
	}
	target := func(path string) client.UploadTarget {
		targets, err := u.CreateUpload(t.Context(), f.ID, []client.UploadFileInput{{Path: path, Size: 5}})
		if err != nil {
			t.Fatal(err)
		}
		return targets[0]
	}
	tus := func(method, url, ticket, body string, header ...string) *http.Response {
		if strings.HasPrefix(url, "/") {
			url = platform.URL + url
		}
		resp, _ := exchange(t, http.DefaultClient, method, url, body, append(header, "Tus-Resumable", "1.0.0", "Authorization", "Bearer "+ticket)...)
		return resp
	}
	to := target("declared")
	if resp := tus("POST", to.URL, to.Ticket, "", "Upload-Length", "10"); resp.StatusCode < 400 {
		t.Errorf("another length than the ticket's: %s", resp.Status)
	}
	resp := tus("POST", to.URL, to.Ticket, "", "Upload-Length", "5")
	if resp.StatusCode != 201 {
		t.Fatalf("begin: %s", resp.Status)
	}
	location, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	if resp := tus("PATCH", location.String(), to.Ticket, "0123456789", "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream"); resp.StatusCode != 413 {
		t.Errorf("longer than declared: %s", resp.Status)
	}
	if files, err := u.Files(t.Context(), f.ID, ""); err != nil || len(files) != 0 {
		t.Errorf("files: %v, %v", files, err)
	}
	if resp := tus("PATCH", location.String(), target("other").Ticket, "01234", "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream"); resp.StatusCode < 400 {
		t.Errorf("with the ticket of another file: %s", resp.Status)
	}
	if resp := tus("PATCH", location.String(), to.Ticket, "01234", "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream"); resp.StatusCode != 204 {
		t.Errorf("as declared: %s", resp.Status)
	}
	if resp := tus("POST", to.URL, "", "", "Upload-Length", "5"); resp.StatusCode != 401 {
		t.Errorf("without a ticket: %s", resp.Status)
	}
	if r := u.Shell().Run("folder", "get", "exact:declared", "-"); r.Stdout != "01234" {
		t.Errorf("holds %+v", r)
	}
}

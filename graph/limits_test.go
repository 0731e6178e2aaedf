package graph_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/berthhq/berth/manager/managertest"
)

const introspection = `query { __schema { queryType { name } types { kind name description fields(includeDeprecated: true) { name
  args { name type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } defaultValue }
  type { kind name ofType { kind name ofType { kind name ofType { kind name } } } } isDeprecated deprecationReason }
  inputFields { name } interfaces { name } enumValues(includeDeprecated: true) { name } possibleTypes { name } } directives { name args { name } } } }`

func TestOperationsHaveLimits(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	member := m.As(t, w.A.Member)
	deep := strings.Repeat("domain { projects(first: 1) { edges { node { ", 4) + "id" + strings.Repeat("} } } }", 4)
	manyAliases := func(n int, field string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "a%d: %s ", i, field)
		}
		return "{" + b.String() + "}"
	}
	bomb := "{ ...f0 }"
	for i := range 30 {
		bomb += fmt.Sprintf(" fragment f%d on Query { a: viewer { initialPassword } ...f%d b: viewer { initialPassword } ...f%d }", i, i+1, i+1)
	}
	bomb += " fragment f30 on Query { viewer { initialPassword } }"
	for _, c := range []struct {
		name, query, code string
		vars              managertest.Vars
	}{
		{"a page of 100", `{ sessions(first: 100) { totalCount } }`, "", nil},
		{"a page of 101", `{ sessions(first: 101) { totalCount } }`, "INVALID_ARGUMENT", nil},
		{"a page of a billion by variable", `query($n: Int) { sessions(first: $n) { totalCount } }`, "INVALID_ARGUMENT", managertest.Vars{"n": 1_000_000_000}},
		{"a negative page size", `{ sessions(first: -1) { totalCount } }`, "INVALID_ARGUMENT", nil},
		{"the last 101", `{ sessions(last: 101) { totalCount } }`, "INVALID_ARGUMENT", nil},
		{"first and last", `{ sessions(first: 1, last: 1) { edges { node { id } } } }`, "INVALID_ARGUMENT", nil},
		{"a number beyond Int", `{ sessions(first: 99999999999) { totalCount } }`, "INVALID_ARGUMENT", nil},
		{"no number", `query($n: Int) { sessions(first: $n) { totalCount } }`, "INVALID_ARGUMENT", managertest.Vars{"n": "many"}},
		{"a nested page of 101", `{ domains { edges { node { projects(first: 101) { totalCount } } } } }`, "INVALID_ARGUMENT", nil},
		{"too deep", "{ viewer { user {" + deep + "} } }", "INVALID_ARGUMENT", nil},
		{"too dear", `{ domains(first: 100) { edges { node { projects(first: 100) { edges { node { memberships { edges { node { id } } } } } } } } } }`, "INVALID_ARGUMENT", nil},
		{"a thousand aliases of a list", manyAliases(999, "sessions { totalCount }"), "INVALID_ARGUMENT", nil},
		{"a thousand aliases", manyAliases(1001, "server { version }"), "INVALID_ARGUMENT", nil},
		{"fragments that double", bomb, "INVALID_ARGUMENT", nil},
		{"recursive fragments", "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }", "INVALID_ARGUMENT", nil},
		{"100,000 directives", "{ server { version " + strings.Repeat("@a ", 100_000) + "} }", "INVALID_ARGUMENT", nil},
		{"a deep literal", "{ node(id: " + strings.Repeat("[", 20_000) + ") { id } }", "INVALID_ARGUMENT", nil},
		{"no such field", "{ nothing }", "INVALID_ARGUMENT", nil},
		{"no id", `{ node(id: "x") { id } }`, "INVALID_ARGUMENT", nil},
		{"an invalid id in a variable", `query($id: ID!) { node(id: $id) { id } }`, "INVALID_ARGUMENT", managertest.Vars{"id": 7}},
		{"a forged cursor", `{ sessions(after: "AAAA") { edges { node { id } } } }`, "INVALID_ARGUMENT", nil},
		{"an invalid cursor", `{ sessions(after: "§") { edges { node { id } } } }`, "INVALID_ARGUMENT", nil},
		{"no time", `{ usage(where: {from: "yesterday"}) { slot } }`, "INVALID_ARGUMENT", nil},
		{"an order by a hidden field", `{ users(orderBy: [{field: PASSWORD_HASH}]) { totalCount } }`, "INVALID_ARGUMENT", nil},
		{"the introspection of tools", introspection, "", nil},
		{"an introspection that is too deep", `{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }`, "INVALID_ARGUMENT", nil},
		{"many introspections", manyAliases(30, "__schema { types { name } }"), "INVALID_ARGUMENT", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var errs managertest.Errors
			list := w.Statements.Of(func() { errs = member.Ask(t, c.query, c.vars, nil) })
			if errs.Code() != c.code {
				t.Fatalf("%q, want %q: %.300s", errs.Code(), c.code, errs)
			}
			if c.code != "" && len(list) > 2 { // the login and its last use
				t.Errorf("refused after %d statements", len(list))
			}
			for _, e := range errs {
				if clean(e.Message) != "" {
					t.Errorf("the message contains %q: %s", clean(e.Message), e.Message)
				}
				if e.Extensions.RequestID == "" {
					t.Errorf("no request id with %q", e.Message)
				}
			}
		})
	}
}

// clean returns a forbidden word in the message, or "".
func clean(message string) string {
	for _, word := range []string{"SELECT", "pgx:", "pgconn", "sql:", "SQLSTATE", ".go:", "/work", "goroutine", "ent:"} {
		if strings.Contains(message, word) {
			return word
		}
	}
	return ""
}

func TestListsAreNeverWhole(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root := m.As(t, w.Superadmin)
	for i := range 60 {
		w.Client.Project.Create().SetName(fmt.Sprint("p", i)).SetDomain(w.A.Domain).ExecX(w.System(t))
	}
	type page struct{ Projects struct{ Edges []any } }
	for _, c := range []struct {
		query string
		vars  managertest.Vars
		want  int
	}{
		{`{ projects { edges { node { id } } } }`, nil, 50},
		{`{ projects(first: null) { edges { node { id } } } }`, nil, 50},
		{`{ projects(first: null, last: null) { edges { node { id } } } }`, nil, 50},
		{`query($n: Int) { projects(first: $n) { edges { node { id } } } }`, nil, 50},
		{`query($n: Int) { projects(first: $n) { edges { node { id } } } }`, managertest.Vars{"n": nil}, 50},
		{`query($n: Int, $m: Int) { projects(first: $n, last: $m) { edges { node { id } } } }`, nil, 50},
		{`query($n: Int, $m: Int) { projects(first: $n, last: $m) { edges { node { id } } } }`, managertest.Vars{"m": 2}, 2},
		{`query($n: Int = 3) { projects(first: $n) { edges { node { id } } } }`, nil, 3},
		{`{ projects(last: 7) { edges { node { id } } } }`, nil, 7},
		{`{ ...p } fragment p on Query { projects { edges { node { id } } } }`, nil, 50},
		{`{ ... on Query { projects { edges { node { id } } } } }`, nil, 50},
	} {
		var got page
		root.Must(t, c.query, c.vars, &got)
		if n := len(got.Projects.Edges); n != c.want {
			t.Errorf("%s %v: %d rows, want %d", c.query, c.vars, n, c.want)
		}
	}
	var nested struct {
		Domains struct {
			Edges []struct {
				Node struct {
					Name     string
					Projects struct{ Edges []any }
				}
			}
		}
	}
	root.Must(t, `query($n: Int) { domains { edges { node { name projects(first: $n) { edges { node { id } } } } } } }`, nil, &nested)
	for _, e := range nested.Domains.Edges {
		if n := len(e.Node.Projects.Edges); n > 50 || e.Node.Name == "a" && n != 50 {
			t.Errorf("%d projects of domain %s, want at most 50", n, e.Node.Name)
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	member := m.As(t, w.A.Member)
	ask := func(c *managertest.Client, kind string, body []byte) (int, string) {
		status, text := c.Post(t, "/graphql", kind, body)
		return status, string(text)
	}
	good, _ := json.Marshal(map[string]string{"query": "{ viewer { initialPassword } }"})
	if status, text := ask(member, "application/json", good); status != http.StatusOK || !strings.Contains(text, "false") {
		t.Errorf("%d %s", status, text)
	}
	big, _ := json.Marshal(map[string]string{"query": "{ viewer { initialPassword } } #" + strings.Repeat("x", 1<<20)})
	for name, c := range map[string]struct {
		kind string
		body []byte
	}{
		"more than a MiB":      {"application/json", big},
		"a list of operations": {"application/json", []byte("[" + string(good) + "]")},
		"nothing":              {"application/json", nil},
		"a form":               {"application/x-www-form-urlencoded", []byte("query=%7Bserver%7Bversion%7D%7D")},
		"text":                 {"text/plain", good},
	} {
		status, text := ask(member, c.kind, c.body)
		if status < 400 && !strings.Contains(text, "INVALID_ARGUMENT") || strings.Contains(text, `"data":{`) {
			t.Errorf("%s: %d %.200s", name, status, text)
		}
		if word := clean(text); word != "" {
			t.Errorf("%s: the answer contains %q: %.300s", name, word, text)
		}
	}
	// A GET request runs nothing.
	r, _ := http.NewRequest(http.MethodGet, m.URL+"/graphql?query=%7Bviewer%7BinitialPassword%7D%7D", nil)
	r.Header = member.Header
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode < 400 {
		t.Errorf("GET: %d", resp.StatusCode)
	}
	// With the cookie but without the header that pages of other origins cannot send.
	forged := &managertest.Client{URL: m.URL, Header: http.Header{"Cookie": member.Header["Cookie"]}}
	if status, _ := ask(forged, "application/json", good); status != http.StatusForbidden {
		t.Errorf("without the header: %d, want 403", status)
	}
}

func TestStrangersSeeNoSchema(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	nobody, member := m.Anonymous(), m.As(t, w.A.Member)
	for _, q := range []string{introspection, `{ __type(name: "Session") { name } }`, `{ viewer { initialPassword } }`, `{ sessions { totalCount } }`, `mutation { trashVfolder(input: {id: "00000000-0000-7000-8000-000000000000"}) { vfolder { id } } }`} {
		if errs := nobody.Ask(t, q, nil, nil); errs.Code() != "UNAUTHENTICATED" {
			t.Errorf("%.60s: %q", q, errs.Code())
		}
	}
	nobody.Must(t, `{ __typename server { version __typename } }`, nil, nil)
	member.Must(t, `{ __type(name: "Session") { name } }`, nil, nil)
	if errs := member.Ask(t, `mutation { createDomain(input: {name: "mine"}) { domain { id } } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member makes a domain: %s", errs)
	}
	if errs := m.As(t, w.Monitor).Ask(t, `mutation { createDomain(input: {name: "mine"}) { domain { id } } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a monitor makes a domain: %s", errs)
	}
}

// TestStrangersGetOneAnswer sends requests without credentials, for existing fields, unknown fields
// and invalid operations. All answers are equal.
func TestStrangersGetOneAnswer(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	nobody := w.Quiet(t).Anonymous()
	request := regexp.MustCompile(`"requestId":"[^"]*"`)
	var first string
	for _, query := range []string{
		`{ sessions { totalCount } }`, `{ nosuch }`, `{ sessions(nosuch: 1) { totalCount } }`, `{ sessions(first: "x") { totalCount } }`,
		`query($x: NoSuch) { sessions { totalCount } }`, `{ node(id: "x") { ... on Keypair { secretHash } } }`, `{ server { nosuch } }`, `{`, ``,
		`mutation { createUser(input: {nosuch: 1}) { user { id } } }`, introspection, `{ server { version } sessions { totalCount } }`,
		`subscription { agentChanged { id } }`, `{ sessions(first: 1000000) { totalCount } }`,
	} {
		body, _ := json.Marshal(map[string]string{"query": query})
		status, text := nobody.Post(t, "/graphql", "application/json", body)
		got := fmt.Sprint(status, " ", request.ReplaceAllString(string(text), ""))
		if first == "" {
			first = got
		}
		if got != first || !strings.Contains(got, "UNAUTHENTICATED") {
			t.Errorf("%.60s: %s, want %s", query, got, first)
		}
	}
	for _, body := range []string{"", "[]", `"text"`, "{", strings.Repeat("secret ", 10_000)} {
		status, text := nobody.Post(t, "/graphql", "application/json", []byte(body))
		if got := fmt.Sprint(status, " ", request.ReplaceAllString(string(text), "")); got != first {
			t.Errorf("%.20q: %.200s, want %s", body, got, first)
		}
	}
	nobody.Must(t, `{ server { version } loginProviders { name } }`, nil, nil)
}

// TestBodiesAreNotSentBack sends invalid JSON as a logged-in user.
func TestBodiesAreNotSentBack(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	member := w.Quiet(t).As(t, w.A.Member)
	for _, accept := range []string{"", "text/event-stream"} {
		c := &managertest.Client{URL: member.URL, Header: member.Header.Clone()}
		if accept != "" {
			c.Header.Set("Accept", accept)
		}
		for _, body := range []string{strings.Repeat("secret ", 70_000), `{"query": secret}`, `["secret"]`, `{"query": "{ viewer { due } }", "variables": "secret"}`} {
			status, text := c.Post(t, "/graphql", "application/json", []byte(body))
			if status != http.StatusBadRequest || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "INVALID_ARGUMENT") {
				t.Errorf("%.30q: %d %.200s", body, status, text)
			}
		}
	}
}

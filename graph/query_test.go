package graph_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"entgo.io/contrib/entgql"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/managertest"
)

// A variable of the wrong type is an error of the caller, always with the same class, and nothing
// runs.
func TestVariablesOfWrongKinds(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	member := m.As(t, w.A.Member)
	const (
		page    = `query($n: Int) { sessions(first: $n) { totalCount } }`
		node    = `query($id: ID!) { node(id: $id) { id } }`
		session = `mutation($in: CreateSessionInput!) { createSession(input: $in) { session { id } } }`
		policy  = `mutation($in: CreateResourcePolicyInput!) { createResourcePolicy(input: $in) { policy { id } } }`
		users   = `query($s: UserStatus, $o: [UserOrder!]) { users(where: {status: $s}, orderBy: $o) { totalCount } }`
		usage   = `query($t: Time) { usage(where: {from: $t}) { slot } }`
	)
	root := m.As(t, w.Superadmin)
	rows := seed(t, w)
	rows.more(1)
	w.Client.Image.Create().SetReference("test/a:1").SetName("a").SetArchitecture("amd64").SetDigest("sha256:1").
		SetRegistry(w.Client.Registry.Query().FirstX(rows.ctx)).ExecX(rows.ctx)
	sessions := w.Client.Session.Query().CountX(rows.ctx)
	before := w.Client.ResourcePolicy.Query().CountX(w.System(t))
	for _, c := range []struct{ query, variables string }{
		{page, `{"n": NaN}`}, {page, `{"n": Infinity}`}, {page, `{"n": 1e400}`}, {page, `{"n": -1}`}, {page, `{"n": 1.5}`},
		{page, `{"n": 2147483648}`}, {page, `{"n": 9223372036854775808}`}, {page, `{"n": -9223372036854775809}`}, {page, `{"n": 1e3}`},
		{page, `{"n": "five"}`}, {page, `{"n": true}`}, {page, `{"n": [1]}`}, {page, `{"n": {}}`}, {page, `[1]`}, {page, `"n"`}, {page, `7`},
		{node, `{}`}, {node, `{"id": null}`}, {node, `{"id": ["a"]}`}, {node, `{"id": {}}`}, {node, `{"id": 1e400}`}, {node, `{"id": false}`},
		{session, `{}`}, {session, `{"in": null}`}, {session, `{"in": {}}`}, {session, `{"in": []}`}, {session, `{"in": {"image": null, "slots": {}}}`},
		{session, `{"in": {"image": "a", "slots": null}}`}, {session, `{"in": {"image": "a", "slots": []}}`}, {session, `{"in": {"image": "a", "slots": "cpu"}}`},
		{session, `{"in": {"image": "a", "slots": {"cpu": "NaN"}}}`}, {session, `{"in": {"image": "a", "slots": {"cpu": "Infinity"}}}`},
		{session, `{"in": {"image": "a", "slots": {"cpu": "1e400"}}}`}, {session, `{"in": {"image": "a", "slots": {"cpu": 1e400}}}`},
		{session, `{"in": {"image": "a", "slots": {"cpu": "-0.0000001"}}}`},
		{session, `{"in": {"image": "a", "slots": {"cpu": "0x10"}}}`}, {session, `{"in": {"image": "a", "slots": {"cpu": "1_000"}}}`},
		{session, `{"in": {"image": "a", "slots": {"cpu": "99999999999999999999999"}}}`}, {session, `{"in": {"image": "a", "slots": {"cpu": {"a": 1}}}}`},
		{session, `{"in": {"image": "a", "slots": {}, "priority": 1e400}}`},
		{session, `{"in": {"image": "a", "slots": {}, "shmBytes": 9223372036854775808}}`}, {session, `{"in": {"image": "a", "slots": {}, "nothing": 1}}`},
		{session, `{"in": {"image": "a", "slots": {}, "type": "ROOT"}}`},
		{session, `{"in": {"image": "a", "slots": {}, "command": [null]}}`}, {session, `{"in": {"image": "a", "slots": {}, "environment": {"A": ["b"]}}}`},
		{policy, `{"in": {"name": "p", "maxScopeBytes": 9223372036854775808}}`}, {policy, `{"in": {"name": "p", "maxSessions": 2147483648000000}}`},
		{policy, `{"in": {"name": "p", "maxSessions": -9}}`}, {policy, `{"in": {"name": "p", "totalSlots": {"cpu": "NaN"}}}`}, {policy, `{"in": {"name": null}}`},
		{users, `{"s": "active"}`}, {users, `{"s": 1}`}, {users, `{"s": {"neq": "active"}}`}, {users, `{"o": [{"field": "password_hash", "direction": "ASC"}]}`},
		{users, `{"o": [null]}`}, {users, `{"o": [{"direction": "ASC"}]}`},
		{usage, `{"t": 0}`}, {usage, `{"t": "0000-00-00T00:00:00Z"}`}, {usage, `{"t": "2026-02-30T00:00:00Z"}`}, {usage, `{"t": "999999-01-01T00:00:00Z"}`}, {usage, `{"t": NaN}`},
	} {
		query, _ := json.Marshal(c.query)
		as := member
		if c.query == policy {
			as = root
		}
		status, body := as.Post(t, "/graphql", "application/json", []byte(`{"query": `+string(query)+`, "variables": `+c.variables+`}`))
		var got struct {
			Data   map[string]any
			Errors managertest.Errors
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Errorf("%s %s: %d, not GraphQL: %.200s", c.query, c.variables, status, body)
			continue
		}
		if code := got.Errors.Code(); code != problem.CodeInvalidArgument || got.Data["node"] != nil || len(got.Data) > 1 {
			t.Errorf("%s %s: %d %q %.300s", c.query, c.variables, status, code, body)
		}
		if word := clean(string(body)); word != "" {
			t.Errorf("%s: the answer contains %q: %s", c.variables, word, body)
		}
	}
	if n := w.Client.ResourcePolicy.Query().CountX(w.System(t)); n != before || w.Client.Session.Query().CountX(w.System(t)) != sessions {
		t.Error("the rejected requests created a row")
	}
	// Minus zero is zero.
	if status, body := member.Post(t, "/graphql", "application/json", []byte(`{"query": "`+page+`", "variables": {"n": -0}}`)); status != http.StatusOK || !strings.Contains(string(body), "totalCount") {
		t.Errorf("-0: %d %s", status, body)
	}
}

// A body is read up to the limit and no further. A body that does not match its headers runs
// nothing.
func TestBodiesAtTheLimit(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	member := m.As(t, w.A.Member)
	const most = 1 << 20
	fill := func(n int) []byte {
		body := []byte(`{"query":"mutation { updateProfile(input: {fullName: \"big\"}) { user { id } } }"}`)
		return append(body, bytes.Repeat([]byte(" "), n-len(body))...)
	}
	name := func() string { return w.Client.User.GetX(w.System(t), w.A.Member.ID).FullName }
	for _, over := range []struct {
		path string
		body []byte
	}{
		{"/graphql", fill(most + 1)}, {"/graphql", fill(8 * most)},
		{"/auth/login", append([]byte(`{"email":"a@example.org","password":"`), append(bytes.Repeat([]byte("x"), most), `"}`...)...)},
		{"/auth/signup", append([]byte(`{"email":"a@example.org","password":"`), append(bytes.Repeat([]byte("x"), most), `"}`...)...)},
	} {
		statements := w.Statements.Of(func() {
			status, text := member.Post(t, over.path, "application/json", over.body)
			if status != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), `"requestId"`) {
				t.Errorf("%s with %d bytes: %d %.200s", over.path, len(over.body), status, text)
			}
		})
		if len(statements) > 2 { // the login and its last use
			t.Errorf("%s with %d bytes: %d statements", over.path, len(over.body), len(statements))
		}
	}
	if name() != "" {
		t.Error("a request that was too large ran")
	}
	if status, text := member.Post(t, "/graphql", "application/json", fill(most)); status != http.StatusOK || name() != "big" {
		t.Errorf("at the limit: %d %.200s", status, text)
	}

	raw := func(headers, body string) string {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(m.URL, "http://"), managertest.Timeout)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(managertest.Timeout))
		fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nCookie: %s\r\nX-Berth-CSRF: 1\r\nOrigin: %s\r\n%s\r\n\r\n%s",
			member.Header.Get("Cookie"), m.URL, headers, body)
		_ = conn.(*net.TCPConn).CloseWrite()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return "closed"
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(text))
	}
	good := `{"query":"mutation { updateProfile(input: {fullName: \"sly\"}) { user { id } } }"}`
	for what, c := range map[string][2]string{
		"more than the Content-Length": {fmt.Sprint("Content-Length: ", len(good)-20), good},
		"less than the Content-Length": {fmt.Sprint("Content-Length: ", len(good)+20), good},
		"two lengths":                  {fmt.Sprintf("Content-Length: %d\r\nContent-Length: 0", len(good)), good},
		"no number":                    {"Content-Length: many", good},
		"a negative length":            {"Content-Length: -1", good},
		"a length and chunks":          {fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked, gzip", len(good)), good},
		"invalid chunks":               {"Transfer-Encoding: chunked", good},
		"an unknown coding":            {"Transfer-Encoding: gzip", good},
		"neither length nor chunk":     {"X-Nothing: 1", good},
		"nothing":                      {"Content-Length: 0", ""},
	} {
		if answer := raw(c[0], c[1]); strings.HasPrefix(answer, "200") && !strings.Contains(answer, "INVALID_ARGUMENT") || strings.HasPrefix(answer, "5") && !strings.HasPrefix(answer, "501") {
			t.Errorf("%s: %s", what, answer)
		}
		if name() != "big" {
			t.Fatalf("%s: it ran", what)
		}
	}
	// Authentication comes before parsing.
	unproved := &managertest.Client{URL: m.URL, Header: http.Header{"Cookie": member.Header["Cookie"]}}
	if status, _ := unproved.Post(t, "/graphql", "application/json", nil); status != http.StatusForbidden {
		t.Errorf("nothing, without the header: %d", status)
	}
	wrong := &managertest.Client{URL: m.URL, Header: http.Header{"Authorization": {"Bearer brt_nothing"}}}
	if status, _ := wrong.Post(t, "/graphql", "application/json", nil); status != http.StatusUnauthorized {
		t.Errorf("nothing, with a wrong token: %d", status)
	}
}

// A mutation must be JSON in a POST, because a page of another origin can send neither.
func TestOnlyPostedJSON(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	member := m.As(t, w.A.Member)
	const query = `mutation { updateProfile(input: {fullName: "forged"}) { user { id } } }`
	body, _ := json.Marshal(map[string]string{"query": query})
	form := "query=" + strings.NewReplacer(" ", "+", "{", "%7B", "}", "%7D", `"`, "%22").Replace(query)
	for _, c := range []struct{ method, path, kind, body string }{
		{"GET", "/graphql?" + form, "", ""}, {"GET", "/graphql", "application/json", string(body)}, {"HEAD", "/graphql?" + form, "", ""},
		{"PUT", "/graphql", "application/json", string(body)}, {"PATCH", "/graphql", "application/json", string(body)}, {"DELETE", "/graphql?" + form, "", ""},
		{"POST", "/graphql?" + form, "application/x-www-form-urlencoded", ""}, {"POST", "/graphql", "application/x-www-form-urlencoded", form},
		{"POST", "/graphql", "text/plain", string(body)}, {"POST", "/graphql", "", string(body)}, {"POST", "/graphql", "application/graphql", query},
		{"POST", "/graphql", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n" + string(body) + "\r\n--x--\r\n"},
		{"POST", "/graphql", "text/plain; application/json", string(body)}, {"POST", "/graphql", "application/jsonp", string(body)},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), c.method, m.URL+c.path, strings.NewReader(c.body))
		r.Header = member.Header.Clone()
		if c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%s %s as %q: %d", c.method, c.path, c.kind, resp.StatusCode)
		}
	}
	if u := w.Client.User.GetX(w.System(t), w.A.Member.ID); u.FullName != "" {
		t.Error("one of them was taken")
	}
}

// connections returns the root fields that are connections, with their orders.
func connections() map[string][]string {
	s, out := schema(), map[string][]string{}
	for _, f := range s.Query.Fields {
		if s.Types[f.Type.Name()].Fields.ForName("edges") == nil {
			continue
		}
		out[f.Name] = []string{""}
		if order := f.Arguments.ForName("orderBy"); order != nil {
			for _, v := range s.Types[s.Types[order.Type.Name()].Fields.ForName("field").Type.Name()].EnumValues {
				out[f.Name] = append(out[f.Name], v.Name)
			}
		}
	}
	return out
}

func list(field, order, cursor string) (string, managertest.Vars) {
	by := ""
	if order != "" {
		by = ", orderBy: [{field: " + order + "}]"
	}
	return fmt.Sprintf(`query($c: Cursor) { %s(first: 1, after: $c%s) { edges { cursor node { __typename } } } }`, field, by), managertest.Vars{"c": cursor}
}

// A cursor works only in the list that returned it. Another list, the same list in another order,
// and a forged cursor are errors.
func TestCursorsOfOtherLists(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root := m.As(t, w.Superadmin)
	rows := seed(t, w)
	rows.more(2)
	all := connections()
	if len(all) < 15 {
		t.Fatalf("only %d lists", len(all))
	}
	type origin struct{ field, order string }
	given := map[origin]string{}
	for field, orders := range all {
		for _, order := range orders {
			query, _ := list(field, order, "")
			var out map[string]struct{ Edges []struct{ Cursor string } }
			root.Must(t, query, nil, &out)
			if edges := out[field].Edges; len(edges) > 0 {
				given[origin{field, order}] = edges[0].Cursor
			}
		}
	}
	if len(given) < 20 {
		t.Fatalf("only %d cursors", len(given))
	}
	tried := 0
	for field, orders := range all {
		for _, order := range orders {
			for from, cursor := range given {
				query, vars := list(field, order, cursor)
				errs := root.Ask(t, query, vars, nil)
				tried++
				want := problem.CodeInvalidArgument
				if trail := map[string]bool{"auditEntries": true, "activity": true}; from.order == order && (from.field == field || trail[from.field] && trail[field]) {
					want = "" // the audit log and the viewer's part of it have the same order
				}
				if from.field == field && from.order != order && errs.Code() == "" && order != "" && from.order != "" {
					continue // cursors of two orders by texts, or by times, have the same form
				}
				if errs.Code() != want {
					t.Errorf("%s by %q takes a cursor of %s by %q: %q %s", field, order, from.field, from.order, errs.Code(), errs)
				}
			}
		}
	}
	t.Logf("%d lists and orders tried", tried)
	raw := func(text string) string { return base64.RawStdEncoding.EncodeToString([]byte(text)) }
	forge := func(id, value any) string {
		var b strings.Builder
		entgql.Cursor[any]{ID: id, Value: value}.MarshalGQL(&b)
		return strings.Trim(b.String(), `"`)
	}
	one := w.Client.Session.Query().FirstX(rows.ctx).ID
	for _, cursor := range []string{
		"", " ", "AAAA", "§", "' OR 1=1 --", strings.Repeat("A", 10_000), raw("\xc0"), raw("\x07"), raw("\x90"), raw("\x80"), raw("\xdf\xff\xff\xff\xff"),
		forge("x", nil), forge(7, nil), forge(uuid.Nil, nil), forge([]byte{1}, nil), forge(nil, nil), forge(one, map[string]any{"a": 1}),
		forge(one, "'; DROP TABLE sessions"), forge(one, []any{"a", "b"}), forge(one, []any{[]any{}, nil, 1.5}), forge(one, []any{nil}), forge(one, 1.5),
	} {
		for _, order := range all["sessions"] {
			query, vars := list("sessions", order, cursor)
			if errs := root.Ask(t, query, vars, nil); errs.Code() != problem.CodeInvalidArgument {
				t.Errorf("sessions by %q after %.40q: %q %s", order, cursor, errs.Code(), errs)
			}
		}
	}
}

// No list at any depth can return a billion objects.
func TestNoListGivesABillion(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root := m.As(t, w.Superadmin)
	s, tried := schema(), 0
	for _, def := range s.Types {
		if def.BuiltIn || def.Kind != ast.Object {
			continue
		}
		for _, f := range def.Fields {
			for _, arg := range []string{"first", "last"} {
				if f.Arguments.ForName(arg) == nil {
					continue
				}
				for _, n := range []string{"1000000000", "1001", "-1"} {
					arg := arg
					if f.Arguments.ForName("text") != nil {
						arg = `text: "x", ` + arg
					}
					query := fmt.Sprintf(`{ %s(%s: %s) { __typename } }`, f.Name, arg, n)
					switch {
					case def == s.Query:
					case def == s.Subscription:
						query = fmt.Sprintf(`subscription { %s(resourceGroup: %q, %s: %s) { __typename } }`, f.Name, w.Group.ID, arg, n)
					case def.Name == "PendingReport":
						query = fmt.Sprintf(`{ node(id: %q) { ... on Session { pending { %s(%s: %s) { __typename } } } } }`, w.A.ID, f.Name, arg, n)
					default:
						query = fmt.Sprintf(`{ node(id: %q) { ... on %s { %s(%s: %s) { __typename } } } }`, w.A.ID, def.Name, f.Name, arg, n)
					}
					tried++
					if errs := root.Ask(t, query, nil, nil); errs.Code() != problem.CodeInvalidArgument || errs[0].Extensions.Limit == "" {
						t.Errorf("%s.%s(%s: %s): %s", def.Name, f.Name, arg, n, errs)
					}
				}
			}
		}
	}
	if tried < 60 {
		t.Errorf("only %d tried", tried)
	}
	for _, c := range []string{`{ nodes(ids: [%s]) { id } }`} {
		ids := strings.Repeat(`"`+w.A.ID.String()+`",`, 101)
		if errs := root.Ask(t, fmt.Sprintf(c, ids), nil, nil); errs.Code() != problem.CodeInvalidArgument {
			t.Errorf("%.30s: %s", c, errs)
		}
	}
}

// shared lists the kinds of objects that do not belong to a single user. Other users can see some
// of them.
var shared = map[id.Kind]bool{
	id.ResourceGroup: true, id.Agent: true, id.Device: true, id.SlotType: true, id.Registry: true, id.Image: true,
	id.Volume: true, id.ResourcePreset: true, id.Role: true,
}

// node(id) returns nothing of other tenants, of any kind, and nothing for an ID with the wrong
// kind.
func TestNodesOfOtherTenants(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	rows := seed(t, w)
	rows.more(2)
	stranger, root := m.As(t, w.B.Loner), m.As(t, w.Superadmin)
	mine := map[uuid.UUID]bool{w.B.Loner.ID: true, w.B.ID: true}
	for _, l := range w.B.Loner.QueryLoginSessions().AllX(rows.ctx) {
		mine[l.ID] = true
	}
	for _, a := range w.Client.LoginAttempt.Query().Where(loginattempt.UserID(w.B.Loner.ID)).AllX(rows.ctx) {
		mine[a.ID] = true
	}
	const query = `query($ids: [ID!]!) { nodes(ids: $ids) { id __typename } }`
	tables, err := w.Client.QueryContext(rows.ctx, `SELECT table_name FROM information_schema.columns WHERE table_schema = current_schema() AND column_name = 'id' AND data_type = 'uuid'`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tables.Next() {
		var name string
		if err := tables.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	tables.Close()
	asked, seen := 0, map[string]bool{}
	for _, name := range names {
		list, err := w.Client.QueryContext(rows.ctx, `SELECT id FROM "`+name+`" LIMIT 20`)
		if err != nil {
			t.Fatal(err)
		}
		ids := []uuid.UUID{}
		for list.Next() {
			var one uuid.UUID
			if err := list.Scan(&one); err != nil {
				t.Fatal(err)
			}
			if !mine[one] {
				ids = append(ids, one)
			}
		}
		list.Close()
		var got struct {
			Nodes []*struct{ ID, Typename string }
		}
		for _, one := range ids { // also under every other kind
			for k := id.Kind(1); k <= 40; k++ {
				changed := one
				changed[8] = changed[8]&0xc0 | byte(k)
				if changed == one {
					continue
				}
				if len(ids) < 60 {
					ids = append(ids, changed)
				}
			}
			break
		}
		stranger.Must(t, query, managertest.Vars{"ids": ids}, &got)
		for i, n := range got.Nodes {
			asked++
			if n != nil && !shared[id.KindOf(ids[i])] {
				t.Errorf("%s: %s of another is seen", name, ids[i])
			}
		}
		got.Nodes = nil
		root.Must(t, query, managertest.Vars{"ids": ids}, &got)
		for i, n := range got.Nodes {
			if n != nil && n.ID != ids[i].String() {
				t.Errorf("%s: %s answers with %s", name, ids[i], n.ID)
			}
			if n != nil {
				seen[name] = true
			}
		}
	}
	if asked < 200 || len(seen) < 20 {
		t.Errorf("only %d ids of %d kinds were requested", asked, len(seen))
	}
	for _, bad := range []string{"", "x", "00000000-0000-0000-0000-000000000000", "' OR 1=1", strings.Repeat("f", 32), w.A.ID.String() + "0"} {
		var got struct{ Node *struct{ ID string } }
		errs := stranger.Ask(t, `query($id: ID!) { node(id: $id) { id } }`, managertest.Vars{"id": bad}, &got)
		if got.Node != nil || errs.Code() != "" && errs.Code() != problem.CodeInvalidArgument {
			t.Errorf("node(%q): %v %s", bad, got.Node, errs)
		}
	}
}

// A subscription to another user's object gets an error and no data, and the socket continues.
func TestSubscriptionsToOthers(t *testing.T) {
	t.Parallel()
	w, m, mine, theirs := world(t)
	ctx := w.System(t)
	ids := map[string]uuid.UUID{
		"sessionChanged": theirs.ID, "kernelStats": mine.ID,
		"kernelLogs":     mine.QueryKernels().FirstX(ctx).ID,
		"vfolderChanged": w.Client.Vfolder.Query().FirstX(ctx).ID,
		"vfolderShareChanged": w.Client.VfolderShare.Create().SetVfolder(w.Client.Vfolder.Query().FirstX(ctx)).SetDomainID(w.A.ID).
			SetEmail("friend@example.org").SetPermission("read_only").SaveX(ctx).ID,
	}
	ids["taskChanged"] = w.Client.Task.Create().SetKind("test").SetInput([]byte("{}")).SetDomainID(w.A.ID).SetCreatorID(w.A.Member.ID).SaveX(ctx).ID
	ids["chatUpdates"] = w.Client.Chat.Create().SetDomainID(w.A.ID).SetOwner(w.A.Member).SetNextNumber(0).SetAsks([]conversation.Column{}).SaveX(ctx).ID
	ids["deploymentChanged"] = w.Client.Deployment.Create().SetName("d").SetDomainID(w.A.ID).SetProject(w.A.Project).SetOwner(w.A.Member).
		SetWanted(1).SetCurrent(1).SetTarget(1).SetWeights(map[int]int{1: 100}).
		SetStrategy([]byte("{}")).SetScaling([]byte("{}")).SetProgress([]byte("{}")).SaveX(ctx).ID
	hidden := w.Client.ResourceGroup.Create().SetName("hidden").SetPublic(false).SaveX(ctx)
	ids["queueChanged"] = hidden.ID
	ids["agentChanged"] = w.Client.Agent.Create().SetName("hidden").SetResourceGroup(hidden).SaveX(ctx).ID
	s := open(t, m.As(t, w.B.Loner))
	for _, f := range schema().Subscription.Fields {
		if f.Name[0] == '_' {
			continue
		}
		if len(f.Arguments) == 0 { // noticeAdded: TestNoticesArePersonal
			continue
		}
		one, ok := ids[f.Name]
		if !ok {
			t.Errorf("%s is not tried", f.Name)
			continue
		}
		arg := f.Arguments[0]
		s.subscribe(f.Name, fmt.Sprintf(`subscription($id: %s) { %s(%s: $id) { __typename } }`, arg.Type, f.Name, arg.Name), managertest.Vars{"id": one})
		got := s.next()
		if got.ID != f.Name || !strings.Contains(string(got.Payload), "NOT_FOUND") || strings.Contains(string(got.Payload), `"data":{`) {
			t.Errorf("%s of another: %s %s", f.Name, got.Type, got.Payload)
		}
		if got.Type == "next" {
			s.next() // complete
		}
	}
	// A subscription to all objects gets no object that the viewer cannot see.
	s.subscribe("all", `subscription { sessionChanged { name } }`, nil)
	own := open(t, m.As(t, w.A.Member))
	own.subscribe("mine", sessionChanged, managertest.Vars{"id": mine.ID})
	own.next()
	touch(t, m, w.A.Member, mine.ID, "heard-by-its-owner")
	own.hears("heard-by-its-owner")
	s.subscribe("after", `query { server { version } }`, nil)
	if got := s.next(); got.ID != "after" {
		t.Errorf("another user gets %s %s", got.ID, got.Payload)
	}
}

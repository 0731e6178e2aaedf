package audit_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/managertest"
)

type auditRow struct {
	Action, ActorEmail, Entity, EntityID, DomainID, Result, Message, RequestID, ClientAddress string
	Actor                                                                                     *struct{ Email string }
}

func trailOf(t *testing.T, c *managertest.Client, field string) []auditRow {
	t.Helper()
	var out map[string]struct{ Edges []struct{ Node auditRow } }
	c.Must(t, `{ `+field+`(first: 100, orderBy: [{field: AT, direction: DESC}]) { edges { node {
		action actorEmail entity entityID: entityId domainID: domainId result message requestID: requestId clientAddress actor { email } } } } }`, nil, &out)
	var rows []auditRow
	for _, e := range out[field].Edges {
		rows = append(rows, e.Node)
	}
	return rows
}

func find(rows []auditRow, action, result string) *auditRow {
	for i, r := range rows {
		if r.Action == action && r.Result == result {
			return &rows[i]
		}
	}
	return nil
}

func TestTrail(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root, admin, member, stranger := m.As(t, w.Superadmin), m.As(t, w.A.Admin), m.As(t, w.A.Member), m.As(t, w.B.Admin)

	root.Must(t, `mutation($u: ID!) { a: updateUser(input: {id: $u, fullName: "One"}) { user { id } } b: updateUser(input: {id: $u, fullName: "Two"}) { user { id } } }`,
		managertest.Vars{"u": w.A.Member.ID}, nil)
	got := trailOf(t, member, "activity")
	if len(got) != 2 || got[0].Action != "updateUser" || got[0].EntityID != w.A.Member.ID.String() || got[0].Entity != "user" ||
		got[0].DomainID != w.A.ID.String() || got[0].RequestID == "" || got[0].ClientAddress == "" {
		t.Errorf("an admin's change of a user, seen by the user: %+v", got)
	}
	if got := trailOf(t, admin, "auditEntries"); find(got, "updateUser", "OK") == nil {
		t.Errorf("to the domain's admin: %+v", got)
	}
	if got := trailOf(t, stranger, "auditEntries"); find(got, "updateUser", "OK") != nil {
		t.Errorf("to another domain's admin: %+v", got)
	}

	secret := "correct horse battery staple"
	member.Ask(t, `mutation($p: String!, $d: ID!) { createUser(input: {email: "x@example.org", username: "x", password: $p, domain: $d}) { user { id } } }`,
		managertest.Vars{"p": secret, "d": w.B.ID}, nil)
	member.Ask(t, `{ retention { days } }`, nil, nil)
	all := trailOf(t, member, "auditEntries")
	for _, action := range []string{"createUser", "retention"} {
		if r := find(all, action, "PERMISSION_DENIED"); r == nil || r.ActorEmail != w.A.Member.Email || r.Actor == nil {
			t.Errorf("denied %s: %+v", action, all)
		}
	}
	if got := trailOf(t, stranger, "auditEntries"); find(got, "createUser", "PERMISSION_DENIED") != nil {
		t.Error("a denial of a user of another domain is seen")
	}
	if strings.Contains(fmt.Sprint(trailOf(t, root, "auditEntries")), secret) {
		t.Error("a password is in the trail")
	}

	unproved := &managertest.Client{URL: member.URL, Header: member.Header.Clone()}
	unproved.Header.Del("X-Berth-CSRF")
	if status, _ := unproved.Post(t, "/graphql", "application/json", []byte(`{"query":"{viewer{user{id}}}"}`)); status != http.StatusForbidden {
		t.Errorf("status %d", status)
	}
	if find(trailOf(t, root, "auditEntries"), "authenticate", "PERMISSION_DENIED") == nil {
		t.Error("a cookie without the header is not in the trail")
	}

	pretender := &managertest.Client{URL: member.URL, Header: member.Header.Clone()}
	pretender.Header.Set("X-Berth-Act-As", w.A.Lead.Email)
	if status, _ := pretender.Post(t, "/graphql", "application/json", []byte(`{"query":"{viewer{user{id}}}"}`)); status != http.StatusForbidden {
		t.Errorf("acting for another: status %d", status)
	}
	if r := find(trailOf(t, root, "auditEntries"), "actAs", "PERMISSION_DENIED"); r == nil || r.ActorEmail != w.A.Member.Email {
		t.Errorf("a rejected attempt to act as another user is not in the audit log: %+v", r)
	}
}

func export(t *testing.T, c *managertest.Client, query string) *http.Response {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/export/audit.csv"+query, nil)
	r.Header = c.Header.Clone()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestAuditExport(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root, admin := m.As(t, w.Superadmin), m.As(t, w.A.Admin)
	const rows = 20_000
	for range rows / 1000 {
		var batch []*ent.AuditEntryCreate
		for i := range 1000 {
			d := w.A.ID
			if i%2 == 0 {
				d = w.B.ID
			}
			batch = append(batch, w.Client.AuditEntry.Create().SetAction("=cmd()").SetResult("OK").SetDomainID(d))
		}
		w.Client.AuditEntry.CreateBulk(batch...).ExecX(w.System(t))
	}
	resp := export(t, root, "")
	begin := make([]byte, 10)
	if _, err := io.ReadFull(resp.Body, begin); err != nil {
		t.Fatal(err)
	}
	if len(resp.TransferEncoding) == 0 || resp.ContentLength >= 0 {
		t.Error("the export is not a stream")
	}
	sent := func(body io.Reader) int {
		all, err := csv.NewReader(body).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if all[1][5] != "'=cmd()" {
			t.Errorf("a formula is %q", all[1][5])
		}
		return len(all) - 1
	}
	if n := sent(io.MultiReader(bytes.NewReader(begin), resp.Body)); n != rows {
		t.Errorf("%d rows", n)
	}
	var seen struct{ AuditEntries struct{ TotalCount int } }
	admin.Must(t, `{ auditEntries(first: 1) { totalCount } }`, nil, &seen)
	if n := sent(export(t, admin, "").Body); n != seen.AuditEntries.TotalCount || n != rows/2 {
		t.Errorf("a domain's admin exports %d rows and lists %d", n, seen.AuditEntries.TotalCount)
	}
	for query, want := range map[string]int{"?domain=x": 400, "?nothing=1": 400, "?from=yesterday": 400, "?domain=" + uuid.NewString(): 200} {
		if got := export(t, root, query); got.StatusCode != want {
			t.Errorf("%s: %d", query, got.StatusCode)
		}
	}
	if got := export(t, m.Anonymous(), ""); got.StatusCode != http.StatusUnauthorized || got.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("nobody: %d", got.StatusCode)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root, member := m.As(t, w.Superadmin), m.As(t, w.A.Member)
	var list struct {
		Retention []struct {
			Category string
			Days     int
		}
	}
	root.Must(t, `{ retention { category days } }`, nil, &list)
	if got := fmt.Sprint(list.Retention); got != "[{AUDIT 365} {LOGINS 365} {SESSIONS_HISTORY 365} {TASKS 90} {NOTICES 90} {NOTICE_DELIVERIES 30} {LOGIN_SESSIONS 30} {TRASH 30} {SESSIONS 0} {SESSION_LOGS 7} {PROMPT_RECORDS 7} {SERIES_SAMPLES 1} {SERIES_MINUTES 14} {SERIES_HOURS 180} {SERIES_DAYS 1095} {CAPACITY 1095}]" {
		t.Error(got)
	}
	set := `mutation($d: Int!) { setRetention(input: {category: AUDIT, days: $d}) { retention { days } } }`
	if code := member.Ask(t, set, managertest.Vars{"d": 1}, nil).Code(); code != "PERMISSION_DENIED" {
		t.Error(code)
	}
	if code := root.Ask(t, set, managertest.Vars{"d": 3651}, nil).Code(); code != "INVALID_ARGUMENT" {
		t.Error(code)
	}
	root.Must(t, set, managertest.Vars{"d": 1}, nil)
	var old []*ent.AuditEntryCreate
	for range 5001 {
		old = append(old, w.Client.AuditEntry.Create().SetAction("old").SetResult("OK").SetAt(time.Now().AddDate(0, 0, -2)))
	}
	for len(old) > 0 {
		n := min(1000, len(old))
		w.Client.AuditEntry.CreateBulk(old[:n]...).ExecX(w.System(t))
		old = old[n:]
	}
	kept := w.Client.AuditEntry.Query().CountX(w.System(t)) - 5001
	audit.New(audit.Config{Client: w.Client, Logger: slog.Default()}).Sweep(t.Context(), time.Now())
	if n := w.Client.AuditEntry.Query().CountX(w.System(t)); n != kept || kept == 0 {
		t.Errorf("%d rows are left, not %d", n, kept)
	}
}

// A long audit log is exported completely and in order, without being in memory as a whole; cells
// that a spreadsheet would run are text.
func TestLongTrailIsStreamed(t *testing.T) {
	w := managertest.New(t)
	m := w.Quiet(t)
	root := m.As(t, w.Superadmin)
	const rows = 100_000
	begins := []string{"=", "+", "-", "@", "\t=", "\r=", "\n=", "a,\"b\"", "plain"}
	begin := "CASE i % 9"
	for i, b := range begins {
		begin += fmt.Sprintf(" WHEN %d THEN %s", i, "E'"+strings.NewReplacer("\t", `\t`, "\r", `\r`, "\n", `\n`, "'", `\'`).Replace(b)+"'")
	}
	if _, err := w.Client.ExecContext(w.System(t), `INSERT INTO audit_entries (id, at, action, result, message, request_id)
		SELECT gen_random_uuid(), timestamptz '2026-01-01' + i * interval '1 s', 'made', 'OK', `+begin+` END || repeat('x', 400), i::text
		FROM generate_series(0, $1::int - 1) i`, rows); err != nil {
		t.Fatal(err)
	}
	resp := export(t, root, "?to="+time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	live := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	in := csv.NewReader(resp.Body)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range header {
		column[name] = i
	}
	var least, most uint64
	n := 0
	for ; ; n++ {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("after %d rows: %v", n, err)
		}
		if i, err := strconv.Atoi(row[column["request_id"]]); err != nil || i != n {
			t.Fatalf("row %d is %q", n, row[column["request_id"]])
		}
		want := begins[n%9]
		if strings.ContainsAny(want[:1], "=+-@\t\r\n") {
			want = "'" + want
		}
		want = strings.ReplaceAll(want, "\r\n", "\n")
		if got := row[column["message"]]; got != want+strings.Repeat("x", 400) {
			t.Fatalf("row %d has %.20q, want %.20q", n, got, want)
		}
		if n%10_000 == 5_000 {
			h := live()
			if least == 0 || h < least {
				least = h
			}
			most = max(most, h)
		}
	}
	if n != rows {
		t.Errorf("%d rows of %d", n, rows)
	}
	t.Logf("the heap has %d to %d KiB while %d MiB go out", least>>10, most>>10, rows*500>>20)
	if most-least > 8<<20 {
		t.Errorf("the heap grows by %d KiB", (most-least)>>10)
	}
}

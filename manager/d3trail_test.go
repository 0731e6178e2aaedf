package manager_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/signature"
	"github.com/berthhq/berth/manager/managertest"
)

// A long trail goes out as it is, in order and whole, and is never in memory;
// what a spreadsheet would run is text.
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
			t.Fatalf("row %d says %.20q, want %.20q", n, got, want)
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

// A keypair tells with every answer how much of its rate is left, and refuses
// what is beyond; requests that it did not sign do not count.
func TestKeypairRate(t *testing.T) {
	w := managertest.New(t)
	m := w.Quiet(t)
	root := m.As(t, w.Superadmin)
	type made struct {
		CreateKeypair struct {
			Keypair struct{ AccessKey string }
			Secret  string
		}
	}
	var slow, other made
	const create = `mutation($n: String!, $r: Int) { createKeypair(input: {name: $n, rateLimit: $r}) { keypair { accessKey } secret } }`
	if errs := m.As(t, w.A.Member).Ask(t, create, managertest.Vars{"n": "mine", "r": 1_000_000}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member sets his own rate: %s", errs)
	}
	// A window that ended meanwhile would count again: the next one is waited for.
	const window = 15 * time.Minute
	if left := time.Until(time.Now().Truncate(window).Add(window)); left < 20*time.Second {
		time.Sleep(left)
	}
	root.Must(t, create, managertest.Vars{"n": "slow", "r": 3}, &slow)
	root.Must(t, create, managertest.Vars{"n": "other", "r": 3}, &other)
	const body = `{"query":"{ viewer { due } }"}`
	ask := func(key made, secret string, change func(*http.Request)) *http.Response {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", m.URL+"/graphql", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if err := signature.Sign(r, key.CreateKeypair.Keypair.AccessKey, secret, []byte(body), time.Now()); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(r)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	key := slow.CreateKeypair
	for range 5 { // the key of one with the secret of another
		if resp := ask(slow, other.CreateKeypair.Secret, nil); resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("X-RateLimit-Limit") != "" {
			t.Errorf("another's secret: %d %v", resp.StatusCode, resp.Header)
		}
	}
	if resp := ask(slow, key.Secret, func(r *http.Request) { r.URL.Path = "/export/audit.csv"; r.Method = "GET" }); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("signed for another path: %d", resp.StatusCode)
	}
	for i := range 3 {
		resp := ask(slow, key.Secret, nil)
		if h := resp.Header; resp.StatusCode != http.StatusOK || h.Get("X-RateLimit-Limit") != "3" || h.Get("X-RateLimit-Remaining") != strconv.Itoa(2-i) || h.Get("X-RateLimit-Window") == "" {
			t.Errorf("request %d: %d %v", i, resp.StatusCode, h)
		}
	}
	resp := ask(slow, key.Secret, nil)
	wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("X-RateLimit-Remaining") != "0" || err != nil || wait < 1 {
		t.Errorf("the fourth: %d %v", resp.StatusCode, resp.Header)
	}
	if resp := ask(other, other.CreateKeypair.Secret, nil); resp.StatusCode != http.StatusOK || resp.Header.Get("X-RateLimit-Remaining") != "2" {
		t.Errorf("another keypair: %d %v", resp.StatusCode, resp.Header)
	}
}

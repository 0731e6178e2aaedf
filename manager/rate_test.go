package manager_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/signature"
	"github.com/berthhq/berth/manager/managertest"
)

const createRated = `mutation($n: String!, $r: Int) { createKeypair(input: {name: $n, rateLimit: $r}) { keypair { accessKey } secret } }`

// rated is a keypair with a rate.
type rated struct {
	CreateKeypair struct {
		Keypair struct{ AccessKey string }
		Secret  string
	}
}

// Every answer to a keypair contains its remaining rate, and requests above the rate are rejected;
// requests without a valid signature do not count.
func TestKeypairRate(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root := m.As(t, w.Superadmin)
	if errs := m.As(t, w.A.Member).Ask(t, createRated, managertest.Vars{"n": "mine", "r": 1_000_000}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member sets their own rate: %s", errs)
	}
	// If the window ends during the test, the counts are meaningless, and all requests are
	// repeated.
	for n := 0; ; n++ {
		const window = 15 * time.Minute
		began := time.Now().Truncate(window)
		wrong := rates(t, m, root, fmt.Sprint(n))
		if time.Now().Truncate(window).Equal(began) {
			for _, w := range wrong {
				t.Error(w)
			}
			return
		}
	}
}

// rates uses up the rate of a new keypair, and returns which answers are wrong.
func rates(t *testing.T, m *managertest.Manager, root *managertest.Client, n string) (wrong []string) {
	t.Helper()
	var slow, other rated
	root.Must(t, createRated, managertest.Vars{"n": "slow" + n, "r": 3}, &slow)
	root.Must(t, createRated, managertest.Vars{"n": "other" + n, "r": 3}, &other)
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	const body = `{"query":"{ viewer { due } }"}`
	ask := func(key rated, secret string, change func(*http.Request)) *http.Response {
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
	for range 5 { // the access key of one keypair with the secret of another
		if resp := ask(slow, other.CreateKeypair.Secret, nil); resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("X-RateLimit-Limit") != "" {
			report("another's secret: %d %v", resp.StatusCode, resp.Header)
		}
	}
	if resp := ask(slow, key.Secret, func(r *http.Request) { r.URL.Path = "/export/audit.csv"; r.Method = "GET" }); resp.StatusCode != http.StatusUnauthorized {
		report("signed for another path: %d", resp.StatusCode)
	}
	for i := range 3 {
		resp := ask(slow, key.Secret, nil)
		if h := resp.Header; resp.StatusCode != http.StatusOK || h.Get("X-RateLimit-Limit") != "3" || h.Get("X-RateLimit-Remaining") != strconv.Itoa(2-i) || h.Get("X-RateLimit-Window") == "" {
			report("request %d: %d %v", i, resp.StatusCode, h)
		}
	}
	resp := ask(slow, key.Secret, nil)
	wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("X-RateLimit-Remaining") != "0" || err != nil || wait < 1 {
		report("the fourth: %d %v", resp.StatusCode, resp.Header)
	}
	if resp := ask(other, other.CreateKeypair.Secret, nil); resp.StatusCode != http.StatusOK || resp.Header.Get("X-RateLimit-Remaining") != "2" {
		report("another keypair: %d %v", resp.StatusCode, resp.Header)
	}
	return wrong
}

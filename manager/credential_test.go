package manager_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/internal/signature"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/managertest"
)

// send sends one request with the credentials of c, over web or the usual client, and returns the
// answer with its body.
func send(t *testing.T, web *http.Client, c *managertest.Client, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = c.Header.Clone()
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if web == nil {
		web = http.DefaultClient
	}
	resp, err := web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// login tries a password, from an address of this machine if web has one.
func login(t *testing.T, m *managertest.Manager, web *http.Client, email, pass string, header ...string) (*http.Response, string) {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"email": email, "password": pass})
	return send(t, web, m.Anonymous(), "POST", "/auth/login", string(body), append(header, "Content-Type", "application/json")...)
}

// from is a client at another address of this machine.
func from(t *testing.T, host byte) *http.Client {
	t.Helper()
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
	tr := &http.Transport{DialContext: d.DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// Every route authenticates the client, and accepts no forged credential.
func TestForgedCredentials(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	jwt := func(header string) string {
		b64 := base64.RawURLEncoding.EncodeToString
		return b64([]byte(header)) + "." + b64([]byte(fmt.Sprintf(`{"sub":%q,"role":"SUPERADMIN","exp":4102444800}`, w.Superadmin.ID))) + "."
	}
	session := "/sessions/" + uuid.NewString()
	for name, authorization := range map[string]string{
		"none":                  "",
		"a token with alg none": "Bearer " + jwt(`{"alg":"none"}`),
		"a token with HS256":    "Bearer " + jwt(`{"alg":"HS256"}`) + "c2ln",
		"a token with a path":   "Bearer " + jwt(`{"alg":"HS256","kid":"../../../dev/null"}`) + "c2ln",
		"an id":                 "Bearer " + w.Superadmin.ID.String(),
		"a password":            "Basic " + base64.StdEncoding.EncodeToString([]byte(w.Superadmin.Email+":"+identitytest.Password)),
		"an empty signature":    "signature",
		"an invalid cookie":     "cookie",
	} {
		c := m.Anonymous()
		switch authorization {
		case "":
		case "cookie":
			c.Header.Set("Cookie", "berth_session="+strings.Repeat("a", 43))
			c.Header.Set("X-Berth-CSRF", "1")
		case "signature":
			c.Header.Set(signature.HeaderInput, `berth=();tag="berth"`)
		default:
			c.Header.Set("Authorization", authorization)
		}
		for _, at := range []struct{ method, path, body string }{
			{"POST", "/graphql", `{"query":"{ viewer { user { id } } }"}`},
			{"POST", "/graphql", `{"query":"{ __schema { types { name } } }"}`},
			{"GET", "/auth/session", ""},
			{"GET", "/export/audit.csv", ""},
			{"GET", session + "/terminal", ""},
			{"GET", session + "/ports/80", ""},
			{"GET", session + "/log", ""},
		} {
			resp, body := send(t, nil, c, at.method, at.path, at.body, "Content-Type", "application/json")
			refused := resp.StatusCode == http.StatusUnauthorized ||
				resp.StatusCode == http.StatusOK && at.path == "/graphql" && strings.Contains(body, `"UNAUTHENTICATED"`)
			if !refused || strings.Contains(body, `"data":{`) || strings.Contains(body, w.Superadmin.ID.String()) {
				t.Errorf("%s: %s %s: %d %s", name, at.method, at.path, resp.StatusCode, body)
			}
		}
	}
}

// attempts of one kind, with their durations.
type attempts struct {
	took  []time.Duration
	bytes uint64
	texts map[string]bool
}

// median returns the median of the durations, because a busy machine delays some of the attempts.
func (a *attempts) median() time.Duration {
	slices.Sort(a.took)
	return a.took[len(a.took)/2]
}

// An attacker who guesses learns nothing: an unknown user gets the same message as a wrong
// password, after the same hashing.
func TestUnknownUserCostsTheSame(t *testing.T) {
	w := managertest.New(t)
	m := w.Quiet(t)
	cost := password.DefaultCost()
	hash, err := password.NewHasher(cost).Hash(t.Context(), identitytest.Password)
	if err != nil {
		t.Fatal(err)
	}
	w.Client.User.UpdateOne(w.A.Member).SetPasswordHash(hash).ExecX(w.System(t))
	const hosts, each = 7, 7 // below the limits of one address and of a pair
	kinds := map[string]*attempts{"known": {texts: map[string]bool{}}, "unknown": {texts: map[string]bool{}}}
	for host := range hosts {
		web := from(t, byte(10+host))
		for i := range each {
			for kind, a := range kinds {
				email := w.A.Member.Email
				if kind == "unknown" {
					email = "nobody@example.org"
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				resp, body := login(t, m, web, email, "guess number "+strconv.Itoa(i))
				a.took = append(a.took, time.Since(began))
				runtime.ReadMemStats(&after)
				a.bytes += after.TotalAlloc - before.TotalAlloc
				var said struct{ Code, Detail, Field string }
				if err := json.Unmarshal([]byte(body), &said); err != nil || resp.StatusCode != http.StatusUnauthorized {
					t.Fatalf("%s: %d %s", kind, resp.StatusCode, body)
				}
				a.texts[said.Code+" "+said.Field+" "+said.Detail] = true
			}
		}
	}
	const n = hosts * each
	for kind, a := range kinds {
		t.Logf("%s user: %d tries, %s and %d KiB each", kind, n, a.median(), a.bytes/n>>10)
		// One argon2 call reuses the memory; two would need twice as much.
		if got, one := a.bytes/n>>10, uint64(cost.Memory); got < one || got >= 2*one {
			t.Errorf("%s user: %d KiB a try, one hash takes %d KiB", kind, got, one)
		}
		if len(a.texts) != 1 {
			t.Errorf("%s user: got %v", kind, a.texts)
		}
	}
	for text := range kinds["known"].texts {
		if !kinds["unknown"].texts[text] {
			t.Errorf("got %q and %v", text, kinds["unknown"].texts)
		}
	}
	known, unknown := kinds["known"].median(), kinds["unknown"].median()
	t.Logf("the medians differ by %.1f %%", 100*(known-unknown).Abs().Seconds()/known.Seconds())
	// Of a hundred attempts in a minute from one address, most are rejected without a check.
	tried, web := 0, from(t, 99)
	for i := range 100 {
		resp, body := login(t, m, web, w.A.Member.Email, "guess number "+strconv.Itoa(i))
		if resp.StatusCode == http.StatusUnauthorized {
			tried++
			continue
		}
		if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode != http.StatusTooManyRequests || err != nil || wait < 1 {
			t.Errorf("guess %d: %d, Retry-After %q: %s", i, resp.StatusCode, resp.Header.Get("Retry-After"), body)
		}
	}
	if tried > 10 {
		t.Errorf("%d of 100 guesses were tried", tried)
	}
}

// A reset returns a password for one use: it is valid for one account, must be replaced at once,
// and is invalid after that and after the next reset.
func TestResetPasswordIsForOnce(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	reset := func(as, of *ent.User) (string, managertest.Errors) {
		var out struct{ ResetUserPassword struct{ Password string } }
		errs := m.As(t, as).Ask(t, `mutation($u: ID!) { resetUserPassword(input: {user: $u}) { password } }`, managertest.Vars{"u": of.ID}, &out)
		return out.ResetUserPassword.Password, errs
	}
	if _, errs := reset(w.B.Admin, w.A.Member); errs.Code() != "NOT_FOUND" {
		t.Errorf("the admin of another domain: %s", errs)
	}
	first, errs := reset(w.A.Admin, w.A.Member)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	second, errs := reset(w.A.Admin, w.A.Member)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if resp, body := login(t, m, nil, w.A.Member.Email, first); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the password of the reset before: %d %s", resp.StatusCode, body)
	}
	if resp, body := login(t, m, nil, w.A.Lead.Email, second); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("for another user: %d %s", resp.StatusCode, body)
	}
	resp, body := login(t, m, nil, w.A.Member.Email, second)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	c := m.Anonymous()
	c.Header.Set("Cookie", resp.Cookies()[0].Name+"="+resp.Cookies()[0].Value)
	c.Header.Set("X-Berth-CSRF", "1")
	if errs := c.Ask(t, `{ sessions { totalCount } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("before the password is changed: %s", errs)
	}
	c.Must(t, `mutation($old: String!) { changePassword(input: {current: $old, new: "four other words"}) { __typename } }`, managertest.Vars{"old": second}, nil)
	c.Must(t, `{ sessions { totalCount } }`, nil, nil)
	if resp, body := login(t, m, nil, w.A.Member.Email, second); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("again, after it was replaced: %d %s", resp.StatusCode, body)
	}
}

// The forwarding headers of an untrusted peer are ignored by limits, the login history, the audit
// log and redirects.
func TestForwardedHeadersOfStrangers(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	claims := func(i int) []string {
		return []string{"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i), "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "https",
			"Forwarded", fmt.Sprintf("for=198.51.100.%d;host=evil.example", i), "X-Real-IP", "198.51.100.7"}
	}
	tried := 0
	for i := range 15 {
		if resp, _ := login(t, m, nil, w.A.Member.Email, "wrong password", claims(i)...); resp.StatusCode == http.StatusUnauthorized {
			tried++
		}
	}
	if tried != 10 {
		t.Errorf("%d of 15 guesses from one address were tried, want 10", tried)
	}
	resp, body := login(t, m, nil, w.A.Lead.Email, identitytest.Password, claims(99)...)
	if resp.StatusCode != http.StatusOK || resp.Cookies()[0].Secure || strings.Contains(body, "evil") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Cookies(), body)
	}
	c := m.As(t, w.A.Lead)
	if resp, body := send(t, nil, c, "POST", "/graphql", `{"query":"mutation { createDomain(input: {name: \"mine\"}) { domain { id } } }"}`,
		append(claims(50), "Content-Type", "application/json")...); !strings.Contains(body, "PERMISSION_DENIED") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	ctx := w.System(t)
	entry := w.Client.AuditEntry.Query().Where(auditentry.Action("createDomain")).OnlyX(ctx)
	if entry.ClientAddress != "127.0.0.1" {
		t.Errorf("the trail names %s", entry.ClientAddress)
	}
	if n := w.Client.LoginAttempt.Query().Where(loginattempt.ClientAddressNEQ("127.0.0.1")).CountX(ctx); n > 0 {
		t.Errorf("%d lines of the history contain the claimed name", n)
	}
}

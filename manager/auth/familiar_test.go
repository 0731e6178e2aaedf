package auth_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// startProxied runs a manager that can encrypt secrets and trusts X-Forwarded-For.
func startProxied(t *testing.T, client *ent.Client, redisURL string) *manager {
	t.Helper()
	ring, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return start(t, client, redisURL, func(c *auth.Config) {
		c.Keys, c.TrustedProxies = ring, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
}

// cookies returns the cookies of an answer in the form of a Cookie header.
func cookies(resp *http.Response) string {
	var list []string
	for _, c := range resp.Cookies() {
		list = append(list, c.Name+"="+c.Value)
	}
	return strings.Join(list, "; ")
}

// device returns the device cookie, which remains after a login has ended.
func device(t *testing.T, resp *http.Response) string {
	t.Helper()
	for _, c := range resp.Cookies() {
		if strings.Contains(c.Name, "device") {
			return c.Name + "=" + c.Value
		}
	}
	t.Fatalf("no device cookie in %q", resp.Header.Values("Set-Cookie"))
	return ""
}

// besiege sends wrong passwords from many addresses until unknown devices are rejected.
func (m *manager) besiege(t *testing.T, email string) {
	t.Helper()
	for i := range 111 {
		from := fmt.Sprintf("203.0.113.%d", i%12)
		resp, _ := m.tryLogin(t, email, "wrong password", "X-Forwarded-For", from)
		if resp.StatusCode == http.StatusTooManyRequests && i >= 100 {
			return
		}
	}
	t.Fatalf("unknown devices are never rejected")
}

func TestNobodyLocksOthersOut(t *testing.T) {
	url := redisURL(t)
	for name, redis := range map[string]string{"with Redis": url, "without Redis": ""} {
		t.Run(name, func(t *testing.T) {
			w := identitytest.New(t)
			m := startProxied(t, w.Client, redis)
			if m.redis != nil {
				m.redis.FlushAll(t.Context())
			}
			email := w.A.Member.Email
			resp, _ := m.tryLogin(t, email, identitytest.Password, "X-Forwarded-For", "192.0.2.1")
			status(t, resp, http.StatusOK)
			own := device(t, resp)
			resp, _ = m.tryLogin(t, w.A.Lead.Email, identitytest.Password, "X-Forwarded-For", "192.0.2.2")
			others := device(t, resp)
			m.besiege(t, email)
			for _, c := range []struct {
				name, from, cookie string
				want               int
			}{
				{"a stranger", "198.51.100.1", "", http.StatusTooManyRequests},
				{"with the device of another user", "198.51.100.1", others, http.StatusTooManyRequests},
				{"with a forged device", "198.51.100.1", own[:len(own)-2] + "AA", http.StatusTooManyRequests},
				{"the known device at another address", "198.51.100.1", own, http.StatusOK},
				{"the known device at an attacker's address", "203.0.113.1", own, http.StatusOK},
				{"the known address", "192.0.2.1", "", http.StatusOK},
			} {
				resp, body := m.tryLogin(t, email, identitytest.Password, "X-Forwarded-For", c.from, "Cookie", c.cookie)
				if resp.StatusCode != c.want {
					t.Errorf("%s gets %d %s, want %d", c.name, resp.StatusCode, body, c.want)
				}
			}
		})
	}
}

func TestKnownDevicesGuessNoMore(t *testing.T) {
	w := identitytest.New(t)
	m := startProxied(t, w.Client, "")
	email := w.A.Member.Email
	resp, _ := m.tryLogin(t, email, identitytest.Password, "X-Forwarded-For", "192.0.2.1")
	login := cookies(resp)
	var own string
	// A login creates one device, however many requests it sends.
	for range 3 {
		resp, _ = m.call(t, "GET", "/auth/session", "", "Cookie", strings.Split(login, ";")[0])
		own = device(t, resp)
		for range 4 {
			resp, _ = m.tryLogin(t, email, "wrong password", "Cookie", own, "X-Forwarded-For", "198.51.100.1")
		}
	}
	status(t, resp, http.StatusTooManyRequests)
	tried := 0
	for range 20 {
		resp, _ = m.tryLogin(t, email, "wrong password", "X-Forwarded-For", "192.0.2.1")
		if resp.StatusCode == http.StatusUnauthorized {
			tried++
		}
	}
	if tried != 10 {
		t.Errorf("%d passwords were tried from a known address, want 10", tried)
	}
	// A device cookie that is older than the password is no longer valid.
	w.Client.User.UpdateOneID(w.A.Lead.ID).SetPasswordChangedAt(time.Now().Add(-time.Hour)).ExecX(viewer.SystemContext(t.Context()))
	resp, _ = m.tryLogin(t, w.A.Lead.Email, identitytest.Password, "X-Forwarded-For", "192.0.2.9")
	old := device(t, resp)
	w.Client.User.UpdateOneID(w.A.Lead.ID).SetPasswordChangedAt(time.Now().Add(time.Second)).ExecX(viewer.SystemContext(t.Context()))
	m.besiege(t, w.A.Lead.Email)
	resp, _ = m.tryLogin(t, w.A.Lead.Email, identitytest.Password, "Cookie", old, "X-Forwarded-For", "198.51.100.1")
	status(t, resp, http.StatusTooManyRequests)
}

func TestWrongCodesLockNobodyOut(t *testing.T) {
	w := identitytest.New(t)
	m := startProxied(t, w.Client, "")
	secret, codes := m.enrol(t, w, w.A.Member)
	email := w.A.Member.Email
	resp, body := m.loginWith(t, loginBody{Email: email, Code: app(t, secret, 0)}, "X-Forwarded-For", "192.0.2.1")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("login: %d %s", resp.StatusCode, body)
	}
	own := device(t, resp)
	refused := 0
	for i := range 12 { // attempts of an attacker who knows the password
		resp, _ = m.loginWith(t, loginBody{Email: email, Code: "00000a"}, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i))
		if resp.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d of 12 wrong codes were refused untried, want 2", refused)
	}
	resp, _ = m.loginWith(t, loginBody{Email: email, Code: app(t, secret, 1)}, "X-Forwarded-For", "203.0.113.77")
	status(t, resp, http.StatusTooManyRequests)
	resp, _ = m.loginWith(t, loginBody{Email: email, Code: codes[0]}, "X-Forwarded-For", "203.0.113.77")
	status(t, resp, http.StatusOK)
	resp, _ = m.loginWith(t, loginBody{Email: email, Code: app(t, secret, 1)}, "X-Forwarded-For", "203.0.113.88", "Cookie", own)
	status(t, resp, http.StatusOK)
}

// An attacker with a stolen login cannot prevent its owner from changing the password or the second
// factor at another login.
func TestStolenLoginLocksNothing(t *testing.T) {
	w := identitytest.New(t)
	m := startProxied(t, w.Client, "")
	resp, _ := m.tryLogin(t, w.A.Member.Email, identitytest.Password)
	stolen := m.seen(t, strings.Split(cookies(resp), ";")[0])
	resp, _ = m.tryLogin(t, w.A.Member.Email, identitytest.Password)
	own := m.seen(t, strings.Split(cookies(resp), ";")[0])
	var err error
	for range 11 {
		err = m.ChangePassword(viewer.With(t.Context(), stolen), auth.ChangePasswordInput{Current: "wrong password", New: "four other words"})
	}
	code(t, err, "RESOURCE_EXHAUSTED")
	err = m.ChangePassword(viewer.With(t.Context(), own), auth.ChangePasswordInput{Current: identitytest.Password, New: "four other words"})
	code(t, err, "")
}

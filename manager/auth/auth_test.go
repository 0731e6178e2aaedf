package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

const timeout = 2 * time.Minute

// manager is a manager. Several managers use the same stores.
type manager struct {
	*auth.Service
	url   string
	redis *redis.Client // nil without Redis
}

// start runs a manager's part of authentication until the test ends.
func start(t *testing.T, client *ent.Client, redisURL string, change func(*auth.Config)) *manager {
	t.Helper()
	m := &manager{}
	cfg := auth.Config{Client: client, Passwords: identitytest.Hasher(), Logger: slog.New(slog.DiscardHandler)}
	var universal redis.UniversalClient
	if redisURL != "" {
		opt, err := redis.ParseURL(redisURL)
		if err != nil {
			t.Fatal(err)
		}
		m.redis = redis.NewClient(opt)
		universal = m.redis
		cfg.Redis = universal
	}
	cfg.Bus = event.New(universal, cfg.Logger)
	if change != nil {
		change(&cfg)
	}
	m.Service = auth.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	if universal != nil {
		wg.Go(func() { _ = cfg.Bus.Run(ctx) })
	}
	wg.Go(func() { _ = m.Run(ctx) })
	mux := http.NewServeMux()
	m.Register(mux)
	mux.Handle("/who", m.Authenticate(http.HandlerFunc(who)))
	server := httptest.NewServer(mux)
	m.url = server.URL
	t.Cleanup(func() {
		server.Close()
		cancel()
		wg.Wait()
		if m.redis != nil {
			_ = m.redis.Close()
		}
	})
	return m
}

func who(w http.ResponseWriter, r *http.Request) {
	v := viewer.From(r.Context())
	if v.IsAnonymous() {
		fmt.Fprint(w, "nobody")
		return
	}
	fmt.Fprintf(w, "%s %s %d %d", v.Email, v.Role, len(v.Projects), len(v.Admins))
}

// call sends a request; header is name, value, name, value.
func (m *manager) call(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, m.url+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func (m *manager) tryLogin(t *testing.T, email, password string, header ...string) (*http.Response, string) {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"email": email, "password": password})
	return m.call(t, "POST", "/auth/login", string(body), append(header, "Content-Type", "application/json")...)
}

// logIn returns the value of a Cookie header.
func (m *manager) logIn(t *testing.T, email string) string {
	t.Helper()
	resp, body := m.tryLogin(t, email, identitytest.Password)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("login: %d %s", resp.StatusCode, body)
	}
	c := resp.Cookies()[0]
	return c.Name + "=" + c.Value
}

func status(t *testing.T, resp *http.Response, want int) {
	t.Helper()
	if resp.StatusCode != want {
		t.Errorf("%s %s: status %d, want %d", resp.Request.Method, resp.Request.URL.Path, resp.StatusCode, want)
	}
}

func TestLogin(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	resp, body := m.tryLogin(t, " Lead-A@example.org ", identitytest.Password)
	status(t, resp, http.StatusOK)
	var got struct {
		User            struct{ ID, Email, Role string }
		InitialPassword *bool
		ExpiresAt       time.Time
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.User.ID != w.A.Lead.ID.String() || got.User.Email != "lead-a@example.org" || got.User.Role != "user" ||
		got.InitialPassword == nil || *got.InitialPassword || time.Until(got.ExpiresAt) < 167*time.Hour {
		t.Errorf("login answers %s", body)
	}
	c := resp.Cookies()[0]
	if c.Name != "berth" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" {
		t.Errorf("cookie is %v", c)
	}
	cookie := c.Name + "=" + c.Value
	resp, again := m.call(t, "GET", "/auth/session", "", "Cookie", cookie)
	status(t, resp, http.StatusOK)
	if again != body {
		t.Errorf("session answers %s, login %s", again, body)
	}
	if _, body := m.call(t, "GET", "/who", "", "Cookie", cookie); body != "lead-a@example.org user 1 1" {
		t.Errorf("I am %q", body)
	}
	if _, body := m.call(t, "GET", "/who", ""); body != "nobody" {
		t.Errorf("without credentials I am %q", body)
	}
	l := w.Client.LoginSession.Query().OnlyX(viewer.SystemContext(t.Context()))
	if bytes.Contains(l.Hash, []byte(c.Value)) || l.ClientAddress != "127.0.0.1" {
		t.Errorf("stored %v", l)
	}
}

func TestOldCookieDoesNotKeepOneOut(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	resp, _ := m.tryLogin(t, w.A.Member.Email, identitytest.Password, "Cookie", "berth=old", "X-Berth-CSRF", "1")
	status(t, resp, http.StatusOK)
	resp, _ = m.call(t, "POST", "/auth/logout", "", "Cookie", "berth=old")
	status(t, resp, http.StatusNoContent)
}

func TestBadLogins(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	w.Client.User.UpdateOneID(w.A.Loner.ID).SetStatus("inactive").ExecX(system)
	w.Client.Domain.UpdateOneID(w.B.ID).SetActive(false).ExecX(system)
	wrong, text := m.tryLogin(t, w.A.Member.Email, "not the password")
	status(t, wrong, http.StatusUnauthorized)
	for name, email := range map[string]string{
		"unknown user": "nobody@example.org", "inactive user": w.A.Loner.Email, "inactive domain": w.B.Member.Email,
		"no address at all": "' OR 1=1 --", "nul": "a\x00b", "not utf-8": "a\xffb",
	} {
		resp, body := m.tryLogin(t, email, identitytest.Password)
		status(t, resp, http.StatusUnauthorized)
		if body != text {
			t.Errorf("%s can be distinguished: %s, but a wrong password gets %s", name, body, text)
		}
		if len(resp.Cookies()) > 0 {
			t.Errorf("%s gets a cookie", name)
		}
	}
	for name, c := range map[string]struct {
		kind, body string
		status     int
	}{
		"a form":          {"application/x-www-form-urlencoded", "email=a&password=b", 400},
		"text":            {"text/plain", `{"email":"a","password":"b"}`, 400},
		"no json":         {"application/json", `email`, 400},
		"more than one":   {"application/json", `{"email":"a","password":"b"}{}`, 400},
		"no password":     {"application/json", `{"email":"a"}`, 400},
		"another type":    {"application/json", `{"email":["a"],"password":"b"}`, 400},
		"a huge password": {"application/json", `{"email":"a","password":"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"}`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _ := m.call(t, "POST", "/auth/login", c.body, "Content-Type", c.kind)
			status(t, resp, c.status)
			if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("answered as %s", got)
			}
		})
	}
}

func TestCookieRules(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	cookie := m.logIn(t, w.A.Member.Email)
	for name, c := range map[string]struct {
		method string
		header []string
		status int
	}{
		"read":                       {"GET", []string{"Cookie", cookie}, 200},
		"write":                      {"POST", []string{"Cookie", cookie, "X-Berth-CSRF", "1"}, 200},
		"write without the header":   {"POST", []string{"Cookie", cookie}, 403},
		"delete without the header":  {"DELETE", []string{"Cookie", cookie}, 403},
		"wrong cookie":               {"GET", []string{"Cookie", "berth=x"}, 401},
		"the cookie's other name":    {"POST", []string{"Cookie", "__Host-" + cookie}, 200}, // the cookie of plain HTTP under the name for TLS: anonymous
		"websocket of this page":     {"GET", []string{"Cookie", cookie, "Upgrade", "websocket", "Origin", m.url}, 200},
		"websocket of another page":  {"GET", []string{"Cookie", cookie, "Upgrade", "WebSocket", "Origin", "http://evil.example"}, 403},
		"websocket of no page":       {"GET", []string{"Cookie", cookie, "Upgrade", "websocket"}, 403},
		"websocket of a null origin": {"GET", []string{"Cookie", cookie, "Upgrade", "websocket", "Origin", "null"}, 403},
		"basic":                      {"GET", []string{"Authorization", "Basic YTpi"}, 401},
		"bearer of a cookie":         {"GET", []string{"Authorization", "Bearer " + cookie}, 401},
		"wrong bearer with cookie":   {"GET", []string{"Cookie", cookie, "Authorization", "Bearer berth_x"}, 401},
		"bearer without anything":    {"GET", []string{"Authorization", "Bearer"}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _ := m.call(t, c.method, "/who", "", c.header...)
			status(t, resp, c.status)
		})
	}
	resp, _ := m.call(t, "GET", "/who", "", "Cookie", "berth=x")
	if c := resp.Cookies(); len(c) != 1 || c[0].MaxAge != -1 {
		t.Errorf("a cookie that is over stays: %v", c)
	}
}

func TestBehindTLSProxy(t *testing.T) {
	w := identitytest.New(t)
	trusting := start(t, w.Client, "", func(c *auth.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	})
	resp, _ := trusting.tryLogin(t, w.A.Member.Email, identitytest.Password,
		"X-Forwarded-Proto", "https", "X-Forwarded-For", "6.6.6.6, 203.0.113.7, 10.0.0.3")
	if c := resp.Cookies()[0]; c.Name != "__Host-berth" || !c.Secure || c.Domain != "" || c.Path != "/" {
		t.Errorf("cookie over TLS is %v", c)
	}
	system := viewer.SystemContext(t.Context())
	if l := w.Client.LoginSession.Query().OnlyX(system); l.ClientAddress != "203.0.113.7" {
		t.Errorf("address %q, want the one before our proxies", l.ClientAddress)
	}
	alone := start(t, w.Client, "", nil)
	resp, _ = alone.tryLogin(t, w.A.Lead.Email, identitytest.Password, "X-Forwarded-Proto", "https", "X-Forwarded-For", "6.6.6.6")
	if c := resp.Cookies()[0]; c.Name != "berth" {
		t.Errorf("somebody else's word about TLS was believed: %v", c)
	}
	if l := w.A.Lead.QueryLoginSessions().OnlyX(system); l.ClientAddress != "127.0.0.1" {
		t.Errorf("somebody else's word about the address was believed: %q", l.ClientAddress)
	}
}

func TestLoginsEnd(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	long := time.Now().Add(-25 * time.Hour)
	for name, end := range map[string]func(t *testing.T, cookie string){
		"logout": func(t *testing.T, cookie string) {
			resp, _ := m.call(t, "POST", "/auth/logout", "", "Cookie", cookie)
			status(t, resp, http.StatusForbidden)
			resp, _ = m.call(t, "POST", "/auth/logout", "", "Cookie", cookie, "X-Berth-CSRF", "1")
			status(t, resp, http.StatusNoContent)
			resp, _ = m.call(t, "POST", "/auth/logout", "", "Cookie", cookie, "X-Berth-CSRF", "1")
			status(t, resp, http.StatusNoContent)
		},
		"idle": func(t *testing.T, _ string) {
			w.Client.LoginSession.Update().SetLastSeenAt(long).ExecX(system)
		},
		"expired": func(t *testing.T, _ string) {
			if _, err := w.Client.ExecContext(t.Context(), "UPDATE login_sessions SET expires_at = $1", long); err != nil {
				t.Fatal(err)
			}
		},
		"user deactivated": func(t *testing.T, _ string) {
			w.Client.User.UpdateOneID(w.A.Member.ID).SetStatus("inactive").ExecX(system)
			t.Cleanup(func() {
				w.Client.User.UpdateOneID(w.A.Member.ID).SetStatus("active").ExecX(viewer.SystemContext(context.Background()))
			})
		},
		"logged in again": func(t *testing.T, cookie string) {
			resp, _ := m.tryLogin(t, w.A.Member.Email, identitytest.Password, "Cookie", cookie, "X-Berth-CSRF", "1")
			status(t, resp, http.StatusOK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cookie := m.logIn(t, w.A.Member.Email)
			resp, _ := m.call(t, "GET", "/auth/session", "", "Cookie", cookie)
			status(t, resp, http.StatusOK)
			end(t, cookie)
			resp, _ = m.call(t, "GET", "/auth/session", "", "Cookie", cookie)
			status(t, resp, http.StatusUnauthorized)
		})
	}
}

func TestUseIsNotedOnceAMinute(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	cookie := m.logIn(t, w.A.Member.Email)
	seen := func() time.Time { return w.Client.LoginSession.Query().OnlyX(system).LastSeenAt }
	first := seen()
	m.call(t, "GET", "/who", "", "Cookie", cookie)
	if !seen().Equal(first) {
		t.Error("noted within the first minute")
	}
	w.Client.LoginSession.Update().SetLastSeenAt(first.Add(-2 * time.Minute)).ExecX(system)
	m.call(t, "GET", "/who", "", "Cookie", cookie)
	if seen().Before(first) {
		t.Error("not noted after two minutes")
	}
}

func TestOldHashesAreMadeAgain(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", func(c *auth.Config) { c.Passwords = dearer() })
	m.logIn(t, w.A.Member.Email)
	system := viewer.SystemContext(t.Context())
	u := w.Client.User.GetX(system, w.A.Member.ID)
	if ok, stale, err := dearer().Check(system, u.PasswordHash, identitytest.Password); !ok || stale || err != nil {
		t.Errorf("right %v, of an old cost %v, %v", ok, stale, err)
	}
	m.logIn(t, w.A.Member.Email)
}

// newIdentity returns an identity service that closes connections through m.
func newIdentity(client *ent.Client, m *manager) *identity.Service {
	return identity.New(identity.Config{
		Client: client, Passwords: identitytest.Hasher(), Logins: m, Address: auth.AddressFrom, Logger: slog.New(slog.DiscardHandler),
	})
}

func redisURL(t *testing.T) string { return testenv.Redis(t) }

package devicelogin_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/devicelogin"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

type setup struct {
	*identitytest.World
	t     *testing.T
	redis *redis.Client
	mux   *http.ServeMux
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	options, err := redis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{World: identitytest.New(t), t: t, redis: redis.NewClient(options), mux: http.NewServeMux()}
	t.Cleanup(func() { _ = s.redis.Close() })
	log := slog.New(slog.DiscardHandler)
	a := auth.New(auth.Config{Client: s.Client, Redis: s.redis, Passwords: identitytest.Hasher(), Bus: event.New(nil, log), PublicURL: "https://berth.test", Logger: log})
	routes := http.NewServeMux()
	devicelogin.New(devicelogin.Config{Client: s.Client, Redis: s.redis, Auth: a, Audit: audit.New(audit.Config{Client: s.Client, Logger: log}), Logger: log}).Register(routes)
	a.Register(s.mux)
	s.mux.Handle("/auth/device-login", routes)
	s.mux.Handle("/auth/device-token", routes)
	s.mux.Handle(devicelogin.CodePath, a.Authenticate(routes))
	s.mux.Handle("/whoami", a.Authenticate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(viewer.From(r.Context()).Email))
	})))
	return s
}

// call sends a request from an address, with headers as pairs, and decodes a JSON answer.
func (s *setup) call(method, path, from string, body any, header ...string) (int, map[string]any, *http.Response) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(string(text)))
	r.RemoteAddr = from + ":1000"
	r.Header.Set("User-Agent", "berth/test")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	out := map[string]any{}
	_ = json.Unmarshal(w.Body.Bytes(), &out)
	out["text"] = w.Body.String()
	return w.Code, out, w.Result()
}

func (s *setup) must(code, want int, out map[string]any) map[string]any {
	s.t.Helper()
	if code != want {
		s.t.Fatalf("status %d, want %d: %s", code, want, out["text"])
	}
	return out
}

const here, elsewhere = "198.51.100.7", "203.0.113.9"

// logIn returns the headers of a person who is logged in on the page.
func (s *setup) logIn(u *ent.User) []string {
	s.t.Helper()
	code, out, resp := s.call("POST", "/auth/login", elsewhere, map[string]string{"email": u.Email, "password": identitytest.Password})
	s.must(code, http.StatusOK, out)
	for _, c := range resp.Cookies() {
		if strings.HasSuffix(c.Name, "berth-session") || strings.Contains(c.Name, "berth") && !strings.Contains(c.Name, "device") {
			return []string{"Cookie", c.Name + "=" + c.Value, auth.CSRFHeader, "1"}
		}
	}
	s.t.Fatal("no cookie")
	return nil
}

func (s *setup) start(host string) (secret, code string) {
	s.t.Helper()
	status, out, _ := s.call("POST", "/auth/device-login", here, map[string]any{"host": host, "expiresDays": 7})
	s.must(status, http.StatusOK, out)
	return out["device_code"].(string), out["user_code"].(string)
}

// poll asks for the token, without the pause between two requests of one program.
func (s *setup) poll(secret string) (int, map[string]any) {
	s.t.Helper()
	keys, err := s.redis.Keys(s.t.Context(), "berth:device:poll:*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	if len(keys) > 0 {
		s.redis.Del(s.t.Context(), keys...)
	}
	code, out, _ := s.call("POST", "/auth/device-token", here, map[string]string{"device_code": secret})
	return code, out
}

func (s *setup) actions() (list []string) {
	return s.Client.AuditEntry.Query().Order(ent.Asc(auditentry.FieldID)).Select(auditentry.FieldAction).StringsX(viewer.SystemContext(context.Background()))
}

func TestLoginByCode(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	person := s.logIn(s.A.Member)
	secret, code := s.start("work<b>station\n")
	status, out := s.poll(secret)
	if s.must(status, http.StatusOK, out)["status"] != "pending" {
		t.Fatalf("before the confirmation: %v", out)
	}
	status, out, _ = s.call("GET", "/auth/device/"+strings.ToLower(code), elsewhere, nil, person...)
	s.must(status, http.StatusOK, out)
	if out["host"] != "workbstation" || out["address"] != here || out["program"] != "berth/test" {
		t.Errorf("the page shows %v", out)
	}
	status, out, _ = s.call("POST", "/auth/device/"+code, elsewhere, map[string]bool{"confirm": true}, person...)
	s.must(status, http.StatusOK, out)
	status, out = s.poll(secret)
	s.must(status, http.StatusOK, out)
	token, _ := out["token"].(string)
	if out["status"] != "done" || token == "" {
		t.Fatalf("after the confirmation: %v", out)
	}
	if status, out, _ = s.call("GET", "/whoami", here, nil, "Authorization", "Bearer "+token); status != http.StatusOK || out["text"] != s.A.Member.Email {
		t.Errorf("the token is of %v (%d)", out["text"], status)
	}
	made := s.Client.AccessToken.Query().OnlyX(viewer.SystemContext(t.Context()))
	if days := made.ExpiresAt.Sub(clock.Now()).Hours() / 24; days < 6.9 || days > 7.1 {
		t.Errorf("the token expires after %.1f days, not 7", days)
	}
	// Both the code and the secret are used up.
	if status, _ = s.poll(secret); status != http.StatusNotFound {
		t.Errorf("the secret works again: %d", status)
	}
	if status, _, _ = s.call("POST", "/auth/device/"+code, elsewhere, map[string]bool{"confirm": true}, person...); status != http.StatusNotFound {
		t.Errorf("the code works again: %d", status)
	}
	if got := strings.Join(s.actions(), " "); got != "confirmDeviceLogin deviceLogin" {
		t.Errorf("audit log: %s", got)
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	person := s.logIn(s.A.Member)
	secret, code := s.start("laptop")
	status, out, _ := s.call("POST", "/auth/device/"+code, elsewhere, map[string]bool{"confirm": false}, person...)
	s.must(status, http.StatusOK, out)
	if status, out := s.poll(secret); out["status"] != "denied" {
		t.Errorf("after the refusal: %d %v", status, out)
	}
	if n := s.Client.AccessToken.Query().CountX(viewer.SystemContext(t.Context())); n != 0 {
		t.Errorf("%d tokens after a refusal", n)
	}
}

// TestWhoCanConfirm checks that only a person who is logged in on the page confirms a code.
func TestWhoCanConfirm(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	person := s.logIn(s.A.Member)
	secret, code := s.start("laptop")
	confirm := map[string]bool{"confirm": true}
	if status, _, _ := s.call("POST", "/auth/device/"+code, elsewhere, confirm); status != http.StatusUnauthorized {
		t.Errorf("without a login: %d", status)
	}
	if status, _, _ := s.call("POST", "/auth/device/"+code, elsewhere, confirm, person[0], person[1]); status != http.StatusForbidden {
		t.Errorf("from the page of another site: %d", status)
	}
	status, out, _ := s.call("POST", "/auth/device/"+code, elsewhere, confirm, person...)
	s.must(status, http.StatusOK, out)
	_, out = s.poll(secret)
	token := out["token"].(string)
	_, code = s.start("another")
	if status, out, _ := s.call("POST", "/auth/device/"+code, elsewhere, confirm, "Authorization", "Bearer "+token); status != http.StatusForbidden {
		t.Errorf("with an access token: %d %v", status, out["text"])
	}
}

// TestLogoutBeforeTheToken checks that a login which has ended gives no token.
func TestLogoutBeforeTheToken(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	person := s.logIn(s.A.Member)
	secret, code := s.start("laptop")
	status, out, _ := s.call("POST", "/auth/device/"+code, elsewhere, map[string]bool{"confirm": true}, person...)
	s.must(status, http.StatusOK, out)
	s.Client.LoginSession.Update().Where(loginsession.UserID(s.A.Member.ID)).SetRevokedAt(clock.Now()).ExecX(viewer.SystemContext(t.Context()))
	if status, out := s.poll(secret); status != http.StatusUnauthorized || out["token"] != nil {
		t.Errorf("after the logout: %d %v", status, out["text"])
	}
}

// TestOneTokenForOneCode sends the secret many times at once.
func TestOneTokenForOneCode(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	person := s.logIn(s.A.Member)
	secret, code := s.start("laptop")
	status, out, _ := s.call("POST", "/auth/device/"+code, elsewhere, map[string]bool{"confirm": true}, person...)
	s.must(status, http.StatusOK, out)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { s.poll(secret) })
	}
	all.Wait()
	if n := s.Client.AccessToken.Query().CountX(viewer.SystemContext(t.Context())); n != 1 {
		t.Errorf("%d tokens for one code", n)
	}
}

// TestLimits checks the limits on starts, on codes that a person tries, and on requests for a token.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	person := s.logIn(s.A.Member)
	secret, _ := s.start("laptop")
	s.poll(secret)
	if status, _, _ := s.call("POST", "/auth/device-token", here, map[string]string{"device_code": secret}); status != http.StatusTooManyRequests {
		t.Errorf("two requests without a pause: %d", status)
	}
	if status, _ := s.poll("a guess"); status != http.StatusNotFound {
		t.Errorf("an unknown secret: %d", status)
	}
	var last int
	for range 21 {
		last, _, _ = s.call("GET", "/auth/device/BBBB-BBBB", elsewhere, nil, person...)
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the 21st code: %d", last)
	}
	for range 30 {
		last, _, _ = s.call("POST", "/auth/device-login", here, map[string]any{"host": "x"})
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the 31st start of an address: %d", last)
	}
	if status, _, _ := s.call("POST", "/auth/device-login", elsewhere, map[string]any{"host": "x", "expiresDays": -1}); status != http.StatusBadRequest {
		t.Errorf("a token that has expired: %d", status)
	}
}

// TestCodesEnd checks that Redis removes requests by itself.
func TestCodesEnd(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	s.start("laptop")
	keys, err := s.redis.Keys(t.Context(), "berth:device:*").Result()
	if err != nil || len(keys) < 2 {
		t.Fatalf("keys: %v, %v", keys, err)
	}
	for _, k := range keys {
		if left := s.redis.TTL(t.Context(), k).Val(); left <= 0 || left.Minutes() > 10 {
			t.Errorf("%s is removed in %s", k, left)
		}
	}
}

package auth_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// startSealed runs a manager that can encrypt secrets.
func startSealed(t *testing.T, client *ent.Client) *manager {
	t.Helper()
	ring, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return start(t, client, "", func(c *auth.Config) { c.Keys = ring })
}

// app returns the code that an authenticator shows, some steps from now.
func app(t *testing.T, secret string, steps int64) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, time.Now().Unix()/30+steps)
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[at:])&0x7fffffff)%1_000_000)
}

// loginBody is the body of a login.
type loginBody struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Code     string `json:"code,omitempty"`
	Force    bool   `json:"force,omitempty"`
}

func (m *manager) loginWith(t *testing.T, in loginBody, header ...string) (*http.Response, string) {
	t.Helper()
	if in.Password == "" {
		in.Password = identitytest.Password
	}
	body, _ := json.Marshal(in)
	return m.call(t, "POST", "/auth/login", string(body), append(header, "Content-Type", "application/json")...)
}

// field returns the field that a problem names.
func field(t *testing.T, body string) string {
	t.Helper()
	var p struct{ Field string }
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return p.Field
}

// enrol enrols a second factor for a user, confirmed with the code of the previous step.
func (m *manager) enrol(t *testing.T, w *identitytest.World, u *ent.User) (secret string, codes []string) {
	t.Helper()
	ctx := w.As(t, u)
	started, err := m.StartTotp(ctx)
	if err != nil {
		t.Fatal(err)
	}
	confirmed, err := m.ConfirmTotp(ctx, auth.ConfirmTotpInput{Code: app(t, started.Secret, -1)})
	if err != nil {
		t.Fatal(err)
	}
	return started.Secret, confirmed.Codes
}

func TestSecondFactorAtLogin(t *testing.T) {
	w := identitytest.New(t)
	m := startSealed(t, w.Client)
	secret, codes := m.enrol(t, w, w.A.Member)
	email := w.A.Member.Email
	if len(codes) != 10 {
		t.Errorf("got the recovery codes %v", codes)
	}
	for _, c := range []struct {
		name   string
		in     loginBody
		status int
		field  string
	}{
		{"wrong password, right code", loginBody{Email: email, Password: "not the password", Code: app(t, secret, 0)}, 401, ""},
		{"no code", loginBody{Email: email}, 401, "code"},
		{"wrong code", loginBody{Email: email, Code: "00000a"}, 401, "code"},
		{"the code that confirmed", loginBody{Email: email, Code: app(t, secret, -1)}, 401, "code"},
		{"right code", loginBody{Email: email, Code: app(t, secret, 1)[:3] + " " + app(t, secret, 1)[3:]}, 200, ""},
		{"the same code again", loginBody{Email: email, Code: app(t, secret, 1)}, 401, "code"},
		{"recovery code", loginBody{Email: email, Code: strings.ToUpper(codes[3])}, 200, ""},
		{"used recovery code", loginBody{Email: email, Code: codes[3]}, 401, "code"},
		{"another recovery code", loginBody{Email: email, Code: codes[4]}, 200, ""},
	} {
		resp, body := m.loginWith(t, c.in)
		if resp.StatusCode != c.status || c.status != 200 && field(t, body) != c.field {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, body)
		}
		if (len(resp.Cookies()) > 0) != (c.status == 200) {
			t.Errorf("%s: cookies %v", c.name, resp.Cookies())
		}
	}
	system := viewer.SystemContext(t.Context())
	if sealed := w.Client.User.GetX(system, w.A.Member.ID).TotpSealed; strings.Contains(string(sealed), secret) || len(sealed) == 0 {
		t.Error("the secret is stored as it is")
	}
}

func TestGuessedCodesLockOut(t *testing.T) {
	w := identitytest.New(t)
	m := startSealed(t, w.Client)
	secret, _ := m.enrol(t, w, w.A.Member)
	got := map[int]int{}
	for i := range 14 {
		resp, _ := m.loginWith(t, loginBody{Email: w.A.Member.Email, Code: fmt.Sprintf("x%05d", i)})
		got[resp.StatusCode]++
	}
	if got[401] != 10 || got[429] != 4 {
		t.Errorf("guesses got %v", got)
	}
	resp, _ := m.loginWith(t, loginBody{Email: w.A.Member.Email, Code: app(t, secret, 0)})
	status(t, resp, http.StatusTooManyRequests)
	// The limit also applies to an open page.
	ctx := w.As(t, w.A.Member)
	for i := range 10 {
		err := m.DisableTotp(ctx, auth.DisableTotpInput{Password: identitytest.Password, Code: fmt.Sprintf("x%05d", i)})
		code(t, err, problem.CodeInvalidArgument)
	}
	err := m.DisableTotp(ctx, auth.DisableTotpInput{Password: identitytest.Password, Code: app(t, secret, 0)})
	code(t, err, problem.CodeResourceExhausted)
}

func TestSecondFactorIsManaged(t *testing.T) {
	w := identitytest.New(t)
	m := startSealed(t, w.Client)
	ctx := w.As(t, w.A.Member)
	_, err := m.ConfirmTotp(ctx, auth.ConfirmTotpInput{Code: "123456"})
	code(t, err, problem.CodeFailedPrecondition)
	started, err := m.StartTotp(ctx)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(started.URL)
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Query().Get("secret") != started.Secret || u.Path != "/Berth:"+w.A.Member.Email {
		t.Errorf("URL is %s", started.URL)
	}
	_, err = m.ConfirmTotp(ctx, auth.ConfirmTotpInput{Code: "abcdef"})
	code(t, err, problem.CodeInvalidArgument)
	resp, _ := m.loginWith(t, loginBody{Email: w.A.Member.Email})
	status(t, resp, http.StatusOK) // the second factor is not enabled yet
	confirmed, err := m.ConfirmTotp(ctx, auth.ConfirmTotpInput{Code: app(t, started.Secret, -1)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.StartTotp(ctx)
	code(t, err, problem.CodeFailedPrecondition)
	again, err := m.RegenerateRecoveryCodes(ctx, auth.RegenerateRecoveryCodesInput{Code: app(t, started.Secret, 0)})
	if err != nil || len(again.Codes) != 10 {
		t.Fatalf("regenerated %v, %v", again, err)
	}
	resp, _ = m.loginWith(t, loginBody{Email: w.A.Member.Email, Code: confirmed.Codes[0]})
	status(t, resp, http.StatusUnauthorized)
	err = m.DisableTotp(ctx, auth.DisableTotpInput{Password: "not the password", Code: again.Codes[0]})
	code(t, err, problem.CodeInvalidArgument)
	err = m.DisableTotp(ctx, auth.DisableTotpInput{Password: identitytest.Password, Code: again.Codes[0]})
	code(t, err, "")
	m.logIn(t, w.A.Member.Email)
}

func TestTokensDoNotManageCredentials(t *testing.T) {
	w := identitytest.New(t)
	m := startSealed(t, w.Client)
	v := w.Viewer(t, w.A.Member)
	v.Scopes = append(v.Scopes, "account")
	ctx := viewer.With(t.Context(), v)
	_, err := m.StartTotp(ctx)
	code(t, err, problem.CodePermissionDenied)
	err = m.ChangePassword(ctx, auth.ChangePasswordInput{Current: identitytest.Password, New: "four other words"})
	code(t, err, problem.CodePermissionDenied)
}

func TestDomainAsksForSecondFactor(t *testing.T) {
	w := identitytest.New(t)
	m := startSealed(t, w.Client)
	system := viewer.SystemContext(t.Context())
	w.Client.Domain.UpdateOneID(w.A.ID).SetTotpRequired(true).ExecX(system)
	resp, body := m.loginWith(t, loginBody{Email: w.A.Member.Email})
	status(t, resp, http.StatusOK)
	if !strings.Contains(body, `"due":"totp"`) {
		t.Errorf("login answers %s", body)
	}
	c := resp.Cookies()[0]
	cookie := c.Name + "=" + c.Value
	if _, again := m.call(t, "GET", "/auth/session", "", "Cookie", cookie); again != body {
		t.Errorf("session answers %s, login %s", again, body)
	}
	ctx := viewer.With(t.Context(), m.seen(t, cookie))
	_, err := m.CreateAccessToken(ctx, auth.CreateAccessTokenInput{Name: "ci"})
	code(t, err, problem.CodePermissionDenied)
	started, err := m.StartTotp(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ConfirmTotp(ctx, auth.ConfirmTotpInput{Code: app(t, started.Secret, 0)}); err != nil {
		t.Fatal(err)
	}
	if due := m.seen(t, cookie).Due; due != "" {
		t.Errorf("still due: %s", due)
	}
}

func TestAdminsResetSecondFactors(t *testing.T) {
	w := identitytest.New(t)
	m := startSealed(t, w.Client)
	m.enrol(t, w, w.A.Member)
	for _, c := range []struct {
		as   *ent.User
		code string
	}{
		{w.A.Loner, problem.CodeNotFound}, {w.A.Lead, problem.CodePermissionDenied}, {w.A.Member, problem.CodePermissionDenied},
		{w.B.Admin, problem.CodeNotFound}, {w.Monitor, problem.CodePermissionDenied}, {w.A.Admin, ""},
	} {
		_, err := m.ResetTotp(w.As(t, c.as), auth.ResetTotpInput{User: w.A.Member.ID})
		code(t, err, c.code)
	}
	m.logIn(t, w.A.Member.Email)
	if u := w.Client.User.GetX(viewer.SystemContext(t.Context()), w.A.Member.ID); u.TotpEnabledAt != nil || u.TotpSealed != nil || u.Role != user.RoleUser {
		t.Errorf("left %v", u)
	}
}

package auth_test

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/identity/password"
)

func dearer() *password.Hasher {
	return password.NewHasher(password.Cost{Memory: 128, Time: 1, Threads: 1})
}

// seen returns the viewer of a request with the cookie.
func (m *manager) seen(t *testing.T, cookie string) *viewer.Viewer {
	t.Helper()
	return m.seenFrom(t, cookie, "")
}

func (m *manager) seenFrom(t *testing.T, cookie, from string) *viewer.Viewer {
	t.Helper()
	v := viewer.From(m.inside(t, cookie, from))
	if v == nil || v.IsAnonymous() {
		t.Fatal("the cookie is not accepted")
	}
	return v
}

// comingFrom returns the context of a request without credentials from an address.
func (m *manager) comingFrom(t *testing.T, from string) context.Context {
	t.Helper()
	return m.inside(t, "", from)
}

// inside returns the context of a request after Authenticate.
func (m *manager) inside(t *testing.T, cookie, from string) (ctx context.Context) {
	t.Helper()
	h := m.Authenticate(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ctx = r.Context() }))
	r, _ := http.NewRequestWithContext(t.Context(), "GET", m.url, nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Forwarded-For", from)
	r.Header.Set("Cookie", cookie)
	h.ServeHTTP(discard{}, r)
	if ctx == nil {
		t.Fatal("the request is refused")
	}
	return ctx
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// ends checks that a watched connection ends, and returns the time until its end.
func ends(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	start := time.Now()
	select {
	case <-ended:
	case <-time.After(timeout):
		t.Errorf("%s continues", what)
	}
	t.Logf("%s took %v to end", what, time.Since(start))
}

func goesOn(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
		t.Errorf("%s ended", what)
	default:
	}
}

// Two managers share the stores. Revoking a credential at one manager ends its connections at the
// other. The periodic check is too slow, so the event must end them.
func TestRevocationReachesOpenConnections(t *testing.T) {
	w := identitytest.New(t)
	url := redisURL(t)
	slow := func(c *auth.Config) { c.RecheckEvery = time.Hour }
	here, there := start(t, w.Client, url, slow), start(t, w.Client, url, slow)
	people := newIdentity(w.Client, here)
	inactive, admin := user.StatusInactive, user.RoleAdmin
	for _, c := range []struct {
		name   string
		revoke func(t *testing.T, ctx context.Context, cookie string) error
	}{
		{"logout", func(t *testing.T, _ context.Context, cookie string) error {
			resp, _ := here.call(t, "POST", "/auth/logout", "", "Cookie", cookie, "X-Berth-CSRF", "1")
			status(t, resp, http.StatusNoContent)
			return nil
		}},
		{"revoked login", func(_ *testing.T, ctx context.Context, _ string) error {
			_, err := here.RevokeLoginSession(ctx, auth.RevokeLoginSessionInput{ID: viewer.From(ctx).Credential})
			return err
		}},
		{"new role", func(t *testing.T, _ context.Context, _ string) error {
			_, err := people.UpdateUser(w.As(t, w.Superadmin), identity.UpdateUserInput{ID: w.A.Member.ID, Role: &admin})
			return err
		}},
		{"left project", func(t *testing.T, ctx context.Context, _ string) error {
			_, err := people.RemoveMembership(ctx, identity.RemoveMembershipInput{Project: w.A.Project.ID, User: w.A.Member.ID})
			return err
		}},
		{"deactivated user", func(t *testing.T, _ context.Context, _ string) error {
			_, err := people.UpdateUser(w.As(t, w.Superadmin), identity.UpdateUserInput{ID: w.A.Member.ID, Status: &inactive})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cookie := here.logIn(t, w.A.Member.Email)
			v := here.seen(t, cookie)
			bystander := here.Watch(t.Context(), here.seen(t, here.logIn(t, w.A.Lead.Email)))
			one, other := here.Watch(t.Context(), v), there.Watch(t.Context(), v)
			goesOn(t, "connection before", one)
			if err := c.revoke(t, viewer.With(t.Context(), v), cookie); err != nil {
				t.Fatal(err)
			}
			ends(t, "connection here", one)
			ends(t, "connection at the other manager", other)
			goesOn(t, "somebody else's connection", bystander)
		})
	}
}

// When addresses are no longer allowed, logins and open connections from them end, with any
// credential; connections from other addresses continue.
func TestAddressesThatAreAllowedNoLonger(t *testing.T) {
	w := identitytest.New(t)
	url := redisURL(t)
	proxied := func(c *auth.Config) {
		sealing(t)(c)
		c.RecheckEvery, c.TrustedProxies = time.Hour, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}
	here, there := start(t, w.Client, url, proxied), start(t, w.Client, url, proxied)
	people := newIdentity(w.Client, here)
	const home, away = "10.1.2.3", "10.2.2.3"
	member := w.As(t, w.A.Member)
	token, err := here.CreateAccessToken(member, auth.CreateAccessTokenInput{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	keypair, err := here.CreateKeypair(member, auth.CreateKeypairInput{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	cookies := map[string]string{}
	open := map[string][2]<-chan struct{}{} // at the two managers
	for _, from := range []string{home, away} {
		resp, _ := here.loginWith(t, loginBody{Email: w.A.Member.Email}, "X-Forwarded-For", from)
		status(t, resp, http.StatusOK)
		cookies[from] = resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
		login := here.seenFrom(t, cookies[from], from)
		for kind, credential := range map[string]uuid.UUID{"login": login.Credential, "token": token.AccessToken.ID, "keypair": keypair.Keypair.ID} {
			v := *login
			v.Credential = credential
			if kind == "token" {
				v.Scopes = access.TokenScopes()
			}
			ctx := here.comingFrom(t, from)
			open[kind+" from "+from] = [2]<-chan struct{}{here.Watch(ctx, &v), there.Watch(ctx, &v)}
		}
	}
	only := []string{"10.1.0.0/16"}
	if _, err := people.UpdateUser(w.As(t, w.A.Admin), identity.UpdateUserInput{ID: w.A.Member.ID, AllowedAddresses: only}); err != nil {
		t.Fatal(err)
	}
	for what, at := range open {
		for _, one := range at {
			if strings.HasSuffix(what, away) {
				ends(t, what, one)
			}
		}
	}
	for what, at := range open {
		if strings.HasSuffix(what, home) {
			goesOn(t, what, at[0])
			goesOn(t, what, at[1])
		}
	}
	for from, want := range map[string]int{home: http.StatusOK, away: http.StatusUnauthorized} {
		resp, _ := there.call(t, "GET", "/who", "", "Cookie", cookies[from], "X-Forwarded-For", from)
		if resp.StatusCode != want {
			t.Errorf("the login from %s gets %d", from, resp.StatusCode)
		}
	}
	// The login from that address has ended permanently, even if its cookie now comes from another
	// address.
	resp, _ := here.call(t, "GET", "/who", "", "Cookie", cookies[away], "X-Forwarded-For", home)
	status(t, resp, http.StatusUnauthorized)
	if got := history(t, w, w.A.Member.ID); !slices.Contains(got, "revoked") {
		t.Errorf("the history is %v", got)
	}
}

func TestLostEventsAreFound(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", func(c *auth.Config) { c.RecheckEvery = 20 * time.Millisecond })
	system := viewer.SystemContext(t.Context())
	for name, change := range map[string]func(v *viewer.Viewer){
		"revoked": func(v *viewer.Viewer) {
			w.Client.LoginSession.UpdateOneID(v.Credential).SetRevokedAt(time.Now()).ExecX(system)
		},
		"new rights": func(*viewer.Viewer) { w.Client.Membership.Update().SetAdmin(true).ExecX(system) },
		"deactivated": func(v *viewer.Viewer) {
			w.Client.User.UpdateOneID(v.User).SetStatus(user.StatusInactive).ExecX(system)
			t.Cleanup(func() {
				w.Client.User.Update().SetStatus(user.StatusActive).ExecX(viewer.SystemContext(context.Background()))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			member := w.A.Member
			if name == "deactivated" {
				member = w.B.Member
			}
			v := m.seen(t, m.logIn(t, member.Email))
			ended := m.Watch(t.Context(), v)
			kept := m.Watch(t.Context(), m.seen(t, m.logIn(t, w.A.Admin.Email)))
			change(v)
			ends(t, "connection", ended)
			goesOn(t, "somebody else's connection", kept)
		})
	}
}

func TestAccessTokens(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	ctx := w.As(t, w.A.Lead)
	past, soon := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	_, err := m.CreateAccessToken(ctx, auth.CreateAccessTokenInput{Name: "ci", ExpiresAt: &past})
	code(t, err, problem.CodeInvalidArgument)
	_, err = m.CreateAccessToken(ctx, auth.CreateAccessTokenInput{Name: "\n"})
	code(t, err, problem.CodeInvalidArgument)
	_, err = m.CreateAccessToken(viewer.With(t.Context(), viewer.Anonymous()), auth.CreateAccessTokenInput{Name: "ci"})
	code(t, err, problem.CodeUnauthenticated)

	out, err := m.CreateAccessToken(ctx, auth.CreateAccessTokenInput{Name: "ci", ExpiresAt: &soon})
	if err != nil {
		t.Fatal(err)
	}
	secret, token := *out.Secret, out.AccessToken
	if !strings.HasPrefix(secret, token.Prefix) || len(secret) != len("berth_")+43 || len(token.Prefix) != 12 {
		t.Errorf("secret %q, prefix %q", secret, token.Prefix)
	}
	bearer := "Bearer " + secret
	resp, body := m.call(t, "POST", "/who", "", "Authorization", bearer)
	status(t, resp, http.StatusOK)
	if body != "lead-a@example.org user 1 1" {
		t.Errorf("I am %q", body)
	}
	system := viewer.SystemContext(t.Context())
	if w.Client.AccessToken.GetX(system, token.ID).LastUsedAt == nil {
		t.Error("the use was not noted")
	}
	v, err := m.Bearer(t.Context(), bearer)
	if err != nil {
		t.Fatal(err)
	}
	ended := m.Watch(t.Context(), v)

	for _, c := range []struct {
		name string
		as   *ent.User
		code string
	}{
		{"fellow member", w.A.Member, problem.CodeNotFound},
		{"domain admin", w.A.Admin, problem.CodeNotFound},
		{"monitor", w.Monitor, problem.CodePermissionDenied},
	} {
		_, err := m.RevokeAccessToken(w.As(t, c.as), auth.RevokeAccessTokenInput{ID: token.ID})
		code(t, err, c.code)
	}
	goesOn(t, "connection", ended)
	for range 2 {
		revoked, err := m.RevokeAccessToken(ctx, auth.RevokeAccessTokenInput{ID: token.ID})
		if err != nil || revoked.AccessToken.RevokedAt == nil || revoked.Secret != nil {
			t.Errorf("revoked %v, %v", revoked, err)
		}
	}
	ends(t, "connection", ended)
	resp, _ = m.call(t, "GET", "/who", "", "Authorization", bearer)
	status(t, resp, http.StatusUnauthorized)
}

func TestExpiredAndInactiveTokens(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	soon := time.Now().Add(time.Hour)
	out, err := m.CreateAccessToken(w.As(t, w.A.Lead), auth.CreateAccessTokenInput{Name: "ci", ExpiresAt: &soon})
	if err != nil {
		t.Fatal(err)
	}
	bearer := "Bearer " + *out.Secret
	system := viewer.SystemContext(t.Context())
	w.Client.User.UpdateOneID(w.A.Lead.ID).SetStatus(user.StatusInactive).ExecX(system)
	resp, _ := m.call(t, "GET", "/who", "", "Authorization", bearer)
	status(t, resp, http.StatusUnauthorized)
	w.Client.User.UpdateOneID(w.A.Lead.ID).SetStatus(user.StatusActive).ExecX(system)
	resp, _ = m.call(t, "GET", "/who", "", "Authorization", bearer)
	status(t, resp, http.StatusOK)
	if _, err := w.Client.ExecContext(t.Context(), "UPDATE access_tokens SET expires_at = now()"); err != nil {
		t.Fatal(err)
	}
	resp, _ = m.call(t, "GET", "/who", "", "Authorization", bearer)
	status(t, resp, http.StatusUnauthorized)
}

func TestRevokeLoginIsForOwner(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	login := m.seen(t, m.logIn(t, w.A.Member.Email)).Credential
	for _, c := range []struct {
		as   *ent.User
		code string
	}{
		{w.A.Lead, problem.CodeNotFound},
		{w.B.Admin, problem.CodeNotFound},
		{w.Monitor, problem.CodePermissionDenied},
		{w.A.Member, ""},
	} {
		_, err := m.RevokeLoginSession(w.As(t, c.as), auth.RevokeLoginSessionInput{ID: login})
		code(t, err, c.code)
	}
	_, err := m.RevokeLoginSession(w.As(t, w.A.Member), auth.RevokeLoginSessionInput{ID: uuid.New()})
	code(t, err, problem.CodeNotFound)
}

func TestChangePassword(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	w.Client.User.UpdateOneID(w.A.Member.ID).SetInitialPassword(true).ExecX(system)
	cookies := []string{m.logIn(t, w.A.Member.Email), m.logIn(t, w.A.Member.Email), m.logIn(t, w.A.Member.Email)}
	v := m.seen(t, cookies[0])
	mine, other := m.Watch(t.Context(), v), m.Watch(t.Context(), m.seen(t, cookies[1]))
	ctx := viewer.With(t.Context(), v)
	for name, in := range map[string]auth.ChangePasswordInput{
		"wrong current": {Current: "not the password", New: "a new password"},
		"too short":     {Current: identitytest.Password, New: "short"},
		"the same":      {Current: identitytest.Password, New: identitytest.Password},
	} {
		t.Run(name, func(t *testing.T) { code(t, m.ChangePassword(ctx, in), problem.CodeInvalidArgument) })
	}
	if err := m.ChangePassword(ctx, auth.ChangePasswordInput{Current: identitytest.Password, New: "a new password"}); err != nil {
		t.Fatal(err)
	}
	ends(t, "connection of another login", other)
	goesOn(t, "own connection", mine)
	var got []int
	for _, cookie := range cookies {
		resp, _ := m.call(t, "GET", "/auth/session", "", "Cookie", cookie)
		got = append(got, resp.StatusCode)
	}
	if !slices.Equal(got, []int{200, 401, 401}) {
		t.Errorf("logins answer %v", got)
	}
	resp, _ := m.tryLogin(t, w.A.Member.Email, identitytest.Password)
	status(t, resp, http.StatusUnauthorized)
	resp, body := m.tryLogin(t, w.A.Member.Email, "a new password")
	status(t, resp, http.StatusOK)
	if !strings.Contains(body, `"initialPassword":false`) {
		t.Errorf("login answers %s", body)
	}
	for range 12 {
		if err := m.ChangePassword(ctx, auth.ChangePasswordInput{Current: "guess", New: "another password"}); err != nil {
			if p, _ := problem.From(err); p.Code == problem.CodeResourceExhausted {
				return
			}
		}
	}
	t.Error("guessing the current password is not slowed down")
}

// code checks the code of an error; "" expects no error.
func code(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		if want != "" {
			t.Errorf("accepted, want %s", want)
		}
		return
	}
	if p, _ := problem.From(err); p.Code != want {
		t.Errorf("got %s (%v), want %q", p.Code, err, want)
	}
}

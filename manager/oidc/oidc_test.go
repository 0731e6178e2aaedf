package oidc_test

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/oidc"
)

const secret = "the client's secret"

// issuer is a small OpenID provider, whose answers the test changes.
type issuer struct {
	*httptest.Server
	key    *rsa.PrivateKey
	header map[string]any
	claims map[string]any // claims that replace the usual ones
	sign   func(string) []byte

	nonce, challenge string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, header: map[string]any{"alg": "RS256", "kid": "one"}, claims: map[string]any{}}
	i.sign = i.rs256
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one",
			"n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("/token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *issuer) rs256(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	sig, _ := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	return sig
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	id, pass, _ := r.BasicAuth()
	if id == "" {
		id, pass = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	pass, _ = url.QueryUnescape(pass)
	if r.FormValue("code") != "a code" || b64(sum[:]) != i.challenge || id != "berth" || pass != secret {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	all := map[string]any{
		"iss": i.URL, "aud": "berth", "sub": "subject", "nonce": i.nonce, "email": "new@corp.com", "email_verified": true,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	}
	for k, v := range i.claims {
		all[k] = v
	}
	head, _ := json.Marshal(i.header)
	body, _ := json.Marshal(all)
	text := b64(head) + "." + b64(body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": "x", "token_type": "Bearer", "id_token": text + "." + b64(i.sign(text)),
	})
}

// setup has a service with one provider for the first domain.
type setup struct {
	*identitytest.World
	*issuer
	service  *oidc.Service
	url      string
	browser  *http.Client
	provider *ent.IdentityProvider
	auth     *auth.Service
	query    string // further parameters of the start
	keys     *seal.Ring
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{World: identitytest.New(t), issuer: newIssuer(t)}
	log := slog.New(slog.DiscardHandler)
	keys, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := auth.New(auth.Config{Client: s.Client, Passwords: identitytest.Hasher(), Bus: event.New(nil, log), Logger: log})
	s.auth, s.keys = a, keys
	s.service = oidc.New(oidc.Config{Client: s.Client, Keys: keys, Auth: a, Logger: log})
	mux := http.NewServeMux()
	s.service.Register(mux)
	a.Register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	jar, _ := cookiejar.New(nil)
	s.browser = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	auto := true
	out, err := s.service.CreateIdentityProvider(s.as(s.Superadmin), oidc.CreateIdentityProviderInput{
		Name: "corp", Issuer: s.issuer.URL, ClientID: "berth", ClientSecret: secret, AutoProvision: &auto,
		EmailDomains: []string{"Corp.com"}, Domain: s.A.ID, Project: &s.A.Project.ID,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.provider = out.IdentityProvider
	return s
}

func (s *setup) as(u *ent.User) context.Context {
	return viewer.With(context.Background(), &viewer.Viewer{User: u.ID, Domain: u.DomainID, Role: viewer.Role(u.Role)})
}

func (s *setup) get(t *testing.T, address string) *http.Response {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", address, nil)
	req.Header.Set("X-Forwarded-Host", "evil.example")
	resp, err := s.browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp
}

// start returns the address of the callback as the issuer would call it.
func (s *setup) start(t *testing.T) string {
	t.Helper()
	resp := s.get(t, s.url+"/auth/oidc/corp/start?return="+url.QueryEscape("//evil.example")+s.query)
	to, err := resp.Location()
	if err != nil {
		t.Fatal(resp.Status, err)
	}
	q := to.Query()
	s.nonce, s.challenge = q.Get("nonce"), q.Get("code_challenge")
	if back := q.Get("redirect_uri"); back != s.url+"/auth/oidc/corp/callback" || q.Get("code_challenge_method") != "S256" {
		t.Fatalf("redirect_uri %q, method %q", back, q.Get("code_challenge_method"))
	}
	return q.Get("redirect_uri") + "?code=a+code&state=" + url.QueryEscape(q.Get("state"))
}

// outcome is "" for a login, or the word for the page.
func outcome(resp *http.Response) string {
	if resp.StatusCode == http.StatusOK {
		return ""
	}
	to, err := resp.Location()
	if err != nil {
		return resp.Status
	}
	return to.Path + " " + to.Query().Get("error")
}

// The issuer redirects the browser to the URL that the operator has configured, whatever the
// request claims.
func TestPublicURL(t *testing.T) {
	s := newSetup(t)
	log := slog.New(slog.DiscardHandler)
	a := auth.New(auth.Config{Client: s.Client, Bus: event.New(nil, log), Logger: log, PublicURL: "https://berth.example"})
	mux := http.NewServeMux()
	oidc.New(oidc.Config{Client: s.Client, Keys: s.keys, Auth: a, Logger: log}).Register(mux)
	r := httptest.NewRequest(http.MethodGet, "/auth/oidc/corp/start", nil)
	r.Host = "evil.example"
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	to, err := w.Result().Location()
	if err != nil {
		t.Fatal(w.Code, err)
	}
	if got := to.Query().Get("redirect_uri"); got != "https://berth.example/auth/oidc/corp/callback" {
		t.Errorf("redirect_uri is %q", got)
	}
}

// An issuer cannot have the address at which a cloud serves a machine's credentials.
func TestIssuersAreNoMetadata(t *testing.T) {
	s := newSetup(t)
	s.Client.IdentityProvider.UpdateOne(s.provider).SetIssuer("http://169.254.169.254").ExecX(viewer.SystemContext(t.Context()))
	if got := outcome(s.get(t, s.url+"/auth/oidc/corp/start")); got != "/login unavailable" {
		t.Errorf("outcome is %q", got)
	}
}

func TestProvisionsThenKnows(t *testing.T) {
	s := newSetup(t)
	ctx := viewer.SystemContext(t.Context())
	for range 2 {
		if got := outcome(s.get(t, s.start(t))); got != "" {
			t.Fatal(got)
		}
	}
	u := s.Client.User.Query().Where(user.Email("new@corp.com")).WithMemberships().OnlyX(ctx)
	if u.DomainID != s.A.ID || u.PasswordHash != "" || u.Status != user.StatusActive || u.Role != user.RoleUser || len(u.Edges.Memberships) != 1 {
		t.Errorf("made %v", u)
	}
	if resp := s.get(t, s.url+"/auth/session"); resp.StatusCode != http.StatusOK {
		t.Errorf("the cookie is rejected: %s", resp.Status)
	}
	n := s.Client.LoginAttempt.Query().
		Where(loginattempt.UserID(u.ID), loginattempt.MethodEQ(loginattempt.MethodOidc), loginattempt.ResultEQ(loginattempt.ResultSuccess)).CountX(ctx)
	if n != 2 {
		t.Errorf("%d lines of history, want 2", n)
	}
	s.Client.User.UpdateOne(u).SetStatus(user.StatusInactive).ExecX(ctx)
	if got := outcome(s.get(t, s.start(t))); got != "/login inactive" {
		t.Errorf("an inactive user: %q", got)
	}
}

// A login by a provider counts toward the limit of logins.
func TestLoginsAreLimited(t *testing.T) {
	s := newSetup(t)
	ctx := viewer.SystemContext(t.Context())
	p := s.Client.ResourcePolicy.Create().SetName("two logins").SetMaxLogins(2).SaveX(ctx)
	s.Client.PolicyAttachment.Create().SetPolicy(p).SetDomain(s.A.Domain).ExecX(ctx)
	for range 2 {
		if got := outcome(s.get(t, s.start(t))); got != "" {
			t.Fatal(got)
		}
		s.browser.Jar, _ = cookiejar.New(nil) // another browser
	}
	first := s.Client.LoginSession.Query().Order(loginsession.ByCreatedAt()).FirstX(ctx)
	v := &viewer.Viewer{User: first.UserID, Credential: first.ID}
	open := s.auth.Watch(t.Context(), v)
	if got := outcome(s.get(t, s.start(t))); got != "/login too_many_logins" {
		t.Fatalf("a third login: %q", got)
	}
	if n := s.Client.LoginSession.Query().Where(loginsession.RevokedAtIsNil()).CountX(ctx); n != 2 {
		t.Fatalf("%d logins continue, want 2", n)
	}
	s.query = "&force=true"
	if got := outcome(s.get(t, s.start(t))); got != "" {
		t.Fatalf("a third login that ends the oldest: %q", got)
	}
	select {
	case <-open:
	case <-time.After(wait.Timeout):
		t.Error("connections of the oldest login continue")
	}
	want := []string{"success", "success", "too_many_logins", "success", "evicted"}
	var got []string
	for _, a := range s.Client.LoginAttempt.Query().Order(loginattempt.ByAt(), loginattempt.ByID()).AllX(ctx) {
		if got = append(got, string(a.Result)); a.Method != loginattempt.MethodOidc || a.UserID == nil || *a.UserID != first.UserID {
			t.Errorf("the history has %v", a)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLinks(t *testing.T) {
	s := newSetup(t)
	ctx := viewer.SystemContext(t.Context())
	s.Client.User.UpdateOne(s.A.Member).SetEmail("old@corp.com").ExecX(ctx)
	s.Client.User.UpdateOne(s.B.Member).SetEmail("other@corp.com").ExecX(ctx)
	s.claims["email"] = "Old@Corp.com"
	if got := outcome(s.get(t, s.start(t))); got != "" {
		t.Fatal(got)
	}
	if x := s.Client.ExternalIdentity.Query().OnlyX(ctx); x.UserID != s.A.Member.ID {
		t.Errorf("linked %v", x)
	}
	s.claims["email"], s.claims["sub"] = "other@corp.com", "another"
	if got := outcome(s.get(t, s.start(t))); got != "/login unknown_user" {
		t.Errorf("a user of another domain: %q", got)
	}
}

// A provider that does not create users accepts only existing users.
func TestNobodyIsProvisionedWithoutTheRule(t *testing.T) {
	s := newSetup(t)
	ctx := viewer.SystemContext(t.Context())
	before := s.Client.User.Query().CountX(ctx)
	off := false
	if _, err := s.service.UpdateIdentityProvider(s.as(s.Superadmin), oidc.UpdateIdentityProviderInput{ID: s.provider.ID, AutoProvision: &off}); err != nil {
		t.Fatal(err)
	}
	if got := outcome(s.get(t, s.start(t))); got != "/login unknown_user" {
		t.Errorf("somebody unknown: %q", got)
	}
	s.Client.User.UpdateOne(s.A.Member).SetEmail("new@corp.com").SetStatus(user.StatusBeforeVerification).ExecX(ctx)
	if got := outcome(s.get(t, s.start(t))); got != "/login inactive" {
		t.Errorf("a user who waits for approval: %q", got)
	}
	s.Client.User.UpdateOne(s.A.Member).SetStatus(user.StatusActive).ExecX(ctx)
	if got := outcome(s.get(t, s.start(t))); got != "" {
		t.Errorf("somebody known: %q", got)
	}
	if n := s.Client.User.Query().CountX(ctx); n != before {
		t.Errorf("%d users were created", n-before)
	}
}

func TestRefuses(t *testing.T) {
	s := newSetup(t)
	ctx := viewer.SystemContext(t.Context())
	public, _ := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	before := s.Client.User.Query().CountX(ctx)
	rows := []struct {
		name   string
		header map[string]any
		claims map[string]any
		sign   func(string) []byte
		want   string
	}{
		{name: "wrong nonce", claims: map[string]any{"nonce": "x"}, want: "token"},
		{name: "wrong audience", claims: map[string]any{"aud": "other"}, want: "token"},
		{name: "two audiences, no party", claims: map[string]any{"aud": []string{"berth", "other"}}, want: "token"},
		{name: "wrong issuer", claims: map[string]any{"iss": "https://other.example"}, want: "token"},
		{name: "expired", claims: map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, want: "token"},
		{name: "alg none", header: map[string]any{"alg": "none"}, sign: func(string) []byte { return nil }, want: "token"},
		{name: "key confusion", header: map[string]any{"alg": "HS256", "kid": "one"}, sign: func(text string) []byte {
			h := hmac.New(sha256.New, public)
			h.Write([]byte(text))
			return h.Sum(nil)
		}, want: "token"},
		{name: "kid with a path", header: map[string]any{"alg": "RS256", "kid": "../../../../dev/null"},
			sign: func(string) []byte { return []byte("x") }, want: "token"},
		{name: "unverified", claims: map[string]any{"email_verified": false}, want: "unverified"},
		{name: "verified as a string", claims: map[string]any{"email_verified": "true"}, want: "unverified"},
		{name: "not verified as a string", claims: map[string]any{"email_verified": "false"}, want: "unverified"},
		{name: "evilcorp.com", claims: map[string]any{"email": "user@evilcorp.com"}, want: "email_domain"},
		{name: "below corp.com", claims: map[string]any{"email": "user@sub.corp.com"}, want: "email_domain"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s.header, s.claims, s.sign = map[string]any{"alg": "RS256", "kid": "one"}, row.claims, s.rs256
			if row.header != nil {
				s.header = row.header
			}
			if row.sign != nil {
				s.sign = row.sign
			}
			if got := outcome(s.get(t, s.start(t))); got != "/login "+row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	if n := s.Client.User.Query().CountX(ctx); n != before {
		t.Errorf("%d users were created", n-before)
	}
	if n := s.Client.LoginAttempt.Query().CountX(ctx); n != len(rows) {
		t.Errorf("%d lines of history, want %d", n, len(rows))
	}
}

func TestStateIsForOnce(t *testing.T) {
	s := newSetup(t)
	back := s.start(t)
	base, _ := url.Parse(s.url)
	cookies := s.browser.Jar.Cookies(base)
	if got := outcome(s.get(t, back)); got != "" {
		t.Fatal(got)
	}
	if got := outcome(s.get(t, back)); got != "/login state" {
		t.Errorf("without the cookie: %q", got)
	}
	s.browser.Jar.SetCookies(base, cookies)
	if got := outcome(s.get(t, back)); got != "/login state" {
		t.Errorf("with the cookie of then: %q", got)
	}
	back = s.start(t)
	if got := outcome(s.get(t, back+"x")); got != "/login state" {
		t.Errorf("another state: %q", got)
	}
	s.start(t)
	s.challenge = "of another verifier"
	if got := outcome(s.get(t, s.startKeeping(t))); got != "/login token" {
		t.Errorf("another verifier: %q", got)
	}
}

// startKeeping starts a login, and makes the issuer expect another verifier.
func (s *setup) startKeeping(t *testing.T) string {
	t.Helper()
	back := s.start(t)
	s.challenge = "of another verifier"
	return back
}

func TestDeadIssuer(t *testing.T) {
	s := newSetup(t)
	s.issuer.Close()
	if got := outcome(s.get(t, s.url+"/auth/oidc/corp/start")); got != "/login unavailable" {
		t.Errorf("got %q", got)
	}
	if got := outcome(s.get(t, s.url+"/auth/oidc/none/start")); got != "/login provider" {
		t.Errorf("got %q", got)
	}
}

func TestProviders(t *testing.T) {
	s := newSetup(t)
	in := oidc.CreateIdentityProviderInput{Name: "x", Issuer: "http://login.example", ClientID: "a", ClientSecret: "b", Domain: s.A.ID}
	if _, err := s.service.CreateIdentityProvider(s.as(s.Superadmin), in); !has(err, problem.CodeInvalidArgument, "issuer") {
		t.Errorf("plain http: %v", err)
	}
	in.Issuer = "https://login.example"
	for _, u := range []*ent.User{s.A.Admin, s.A.Member, s.Monitor} {
		if _, err := s.service.CreateIdentityProvider(s.as(u), in); !has(err, problem.CodePermissionDenied, "") {
			t.Errorf("%s: %v", u.Email, err)
		}
		if _, err := s.service.DeleteIdentityProvider(s.as(u), oidc.DeleteIdentityProviderInput{ID: s.provider.ID}); err == nil {
			t.Errorf("%s deletes", u.Email)
		}
	}
	stored := s.Client.IdentityProvider.GetX(viewer.SystemContext(t.Context()), s.provider.ID)
	if strings.Contains(string(stored.ClientSecretSealed), secret) {
		t.Error("the secret is stored in the clear")
	}
	list, err := s.service.LoginProviders(viewer.With(t.Context(), viewer.Anonymous()))
	if err != nil || len(list) != 1 || *list[0] != (oidc.LoginProvider{Name: "corp", DisplayName: "corp"}) {
		t.Errorf("shown %v, %v", list, err)
	}
	if _, err := s.service.DeleteIdentityProvider(s.as(s.Superadmin), oidc.DeleteIdentityProviderInput{ID: s.provider.ID}); err != nil {
		t.Error(err)
	}
}

func has(err error, code, field string) bool {
	p, _ := problem.From(err)
	return err != nil && p.Code == code && (field == "" || p.Field == field)
}

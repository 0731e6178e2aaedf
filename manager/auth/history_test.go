package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// limit sets the maximum number of logins.
func limit(t *testing.T, w *identitytest.World, n int) *ent.PolicyAttachmentCreate {
	t.Helper()
	p := w.Client.ResourcePolicy.Create().SetName(fmt.Sprint("logins ", n, uuid.New())).SetMaxLogins(n).
		SaveX(viewer.SystemContext(t.Context()))
	return w.Client.PolicyAttachment.Create().SetPolicy(p)
}

// history lists the login results of a user, oldest first.
func history(t *testing.T, w *identitytest.World, of uuid.UUID) []string {
	t.Helper()
	var list []string
	for _, a := range w.Client.LoginAttempt.Query().Where(loginattempt.UserID(of)).Order(loginattempt.ByAt()).
		AllX(viewer.SystemContext(t.Context())) {
		list = append(list, string(a.Result))
	}
	return list
}

func TestLoginsAreLimited(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	limit(t, w, 5).SetDomain(w.A.Domain).ExecX(system)
	limit(t, w, 2).SetProject(w.A.Project).ExecX(system)
	limit(t, w, 3).SetUser(w.A.Member).ExecX(system)
	limit(t, w, 0).SetUser(w.A.Member).SetWithinProject(w.A.Project).ExecX(system)
	oldest, second := m.logIn(t, w.A.Member.Email), m.logIn(t, w.A.Member.Email)
	open := m.Watch(t.Context(), m.seen(t, oldest))
	resp, body := m.loginWith(t, loginBody{Email: w.A.Member.Email})
	status(t, resp, http.StatusConflict)
	if field(t, body) != "force" || !strings.Contains(body, `"limit":"2"`) {
		t.Errorf("refused with %s", body)
	}
	goesOn(t, "the oldest login", open)
	resp, _ = m.loginWith(t, loginBody{Email: w.A.Member.Email, Force: true})
	status(t, resp, http.StatusOK)
	ends(t, "the oldest login", open)
	for cookie, want := range map[string]int{oldest: 401, second: 200} {
		resp, _ := m.call(t, "GET", "/auth/session", "", "Cookie", cookie)
		status(t, resp, want)
	}
	// a browser that logs in again replaces its own login
	resp, _ = m.loginWith(t, loginBody{Email: w.A.Member.Email}, "Cookie", second, "X-Berth-CSRF", "1")
	status(t, resp, http.StatusOK)
	want := []string{"success", "success", "too_many_logins", "evicted", "success", "logout", "success"}
	if d := cmp.Diff(want, history(t, w, w.A.Member.ID)); d != "" {
		t.Error(d)
	}
	m.logIn(t, w.B.Member.Email)
	for range 5 {
		m.logIn(t, w.A.Loner.Email)
	}
	limit(t, w, 0).SetUser(w.A.Loner).ExecX(system)
	resp, body = m.loginWith(t, loginBody{Email: w.A.Loner.Email, Force: true})
	status(t, resp, http.StatusConflict)
	if field(t, body) != "logins" {
		t.Errorf("refused with %s", body)
	}
}

func TestManyLoginsAtOnceDoNotPassTheLimit(t *testing.T) {
	w := identitytest.New(t)
	url := redisURL(t)
	managers := []*manager{start(t, w.Client, url, nil), start(t, w.Client, url, nil)}
	managers[0].redis.FlushAll(t.Context())
	limit(t, w, 3).SetUser(w.A.Member).ExecX(viewer.SystemContext(t.Context()))
	var mu sync.Mutex
	got := map[int]int{}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			resp, _ := managers[i%2].loginWith(t, loginBody{Email: w.A.Member.Email})
			mu.Lock()
			defer mu.Unlock()
			got[resp.StatusCode]++
		})
	}
	wg.Wait()
	if got[200] != 3 || got[409] != 7 {
		t.Errorf("ten logins at once got %v, want 3 of 200 and 7 of 409", got)
	}
}

func TestHistory(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	agent := "browser\xff" + strings.Repeat("x", 300)
	m.loginWith(t, loginBody{Email: w.A.Member.Email, Password: "wrong"}, "User-Agent", "browser")
	cookie := m.logIn(t, w.A.Member.Email)
	m.call(t, "POST", "/auth/logout", "", "Cookie", cookie, "X-Berth-CSRF", "1")
	m.logIn(t, w.A.Member.Email)
	query, as, err := m.Logins(w.As(t, w.A.Admin), &w.A.Member.ID)
	if err != nil {
		t.Fatal(err)
	}
	logins := query.AllX(as)
	if len(logins) != 1 {
		t.Fatalf("the admin sees %v", logins)
	}
	if _, err := m.RevokeLoginSession(w.As(t, w.A.Admin), auth.RevokeLoginSessionInput{ID: logins[0].ID}); err != nil {
		t.Fatal(err)
	}
	w.Client.User.UpdateOneID(w.A.Member.ID).SetStatus("inactive").ExecX(system)
	m.loginWith(t, loginBody{Email: w.A.Member.Email})
	want := []string{"wrong_credentials", "success", "logout", "success", "revoked", "not_active"}
	if d := cmp.Diff(want, history(t, w, w.A.Member.ID)); d != "" {
		t.Error(d)
	}
	first := w.Client.LoginAttempt.Query().Order(loginattempt.ByAt()).FirstX(system)
	if first.ClientAddress != "127.0.0.1" || first.UserAgent != "browser" || first.Email != w.A.Member.Email || *first.DomainID != w.A.ID {
		t.Errorf("kept %v", first)
	}

	m.loginWith(t, loginBody{Email: "nobody\x00\n" + strings.Repeat("é", 400)}, "User-Agent", agent)
	unknown := w.Client.LoginAttempt.Query().Where(loginattempt.UserIDIsNil()).OnlyX(system)
	if !strings.HasPrefix(unknown.Email, "nobodyé") || len(unknown.Email) > 254 || unknown.Result != loginattempt.ResultWrongCredentials {
		t.Errorf("kept %q, %s", unknown.Email, unknown.Result)
	}
	for range 12 {
		m.loginWith(t, loginBody{Email: "guess@example.org"})
	}
	if n := w.Client.LoginAttempt.Query().Where(loginattempt.ResultEQ(loginattempt.ResultThrottled)).CountX(system); n != 2 {
		t.Errorf("%d lines about throttled attempts, want 2", n)
	}
	if n := w.Client.LoginAttempt.Query().CountX(w.As(t, w.A.Member)); n != len(want) {
		t.Errorf("the user sees %d lines, want their %d", n, len(want))
	}
	for as, c := range map[*ent.User]string{w.A.Loner: problem.CodeNotFound, w.A.Lead: problem.CodePermissionDenied, w.B.Admin: problem.CodeNotFound, w.Superadmin: ""} {
		_, _, err := m.Logins(w.As(t, as), &w.A.Member.ID)
		code(t, err, c)
	}
}

func TestLoginsThatExpireAreInTheHistory(t *testing.T) {
	w := identitytest.New(t)
	system := viewer.SystemContext(t.Context())
	w.Client.LoginSession.Create().SetUser(w.A.Member).SetHash([]byte("a")).SetExpiresAt(time.Now().Add(-time.Minute)).ExecX(system)
	w.Client.LoginSession.Create().SetUser(w.A.Member).SetHash([]byte("b")).SetExpiresAt(time.Now().Add(time.Hour)).
		SetLastSeenAt(time.Now().Add(-25 * time.Hour)).ExecX(system)
	w.Client.LoginSession.Create().SetUser(w.A.Member).SetHash([]byte("c")).SetExpiresAt(time.Now().Add(time.Hour)).ExecX(system)
	start(t, w.Client, "", nil)
	start(t, w.Client, "", nil)
	want := []string{"expired", "expired"}
	wait.For(t, func() error {
		if got := history(t, w, w.A.Member.ID); !slices.Equal(got, want) {
			return fmt.Errorf("the history is %v", got)
		}
		return nil
	})
}

func TestAllowedAddresses(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", func(c *auth.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	const inside, outside = "10.1.2.3", "10.2.2.3"
	system := viewer.SystemContext(t.Context())
	w.Client.User.UpdateOneID(w.A.Member.ID).SetAllowedAddresses([]string{"10.1.0.0/16", "2001:db8::/32"}).ExecX(system)
	_, wrong := m.tryLogin(t, w.A.Member.Email, "not the password")
	resp, body := m.loginWith(t, loginBody{Email: w.A.Member.Email}, "X-Forwarded-For", outside)
	status(t, resp, http.StatusUnauthorized)
	if body != wrong {
		t.Errorf("distinguishable: %s, but a wrong password gets %s", body, wrong)
	}
	resp, _ = m.loginWith(t, loginBody{Email: w.A.Member.Email}, "X-Forwarded-For", inside)
	status(t, resp, http.StatusOK)
	c := resp.Cookies()[0]
	token, err := m.CreateAccessToken(w.As(t, w.A.Member), auth.CreateAccessTokenInput{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	for _, credential := range [][]string{{"Cookie", c.Name + "=" + c.Value}, {"Authorization", "Bearer " + *token.Secret}} {
		for from, want := range map[string]int{inside: 200, outside: 401, "2001:db8::1": 200, "6.6.6.6, " + outside: 401, inside + ", " + outside: 401} {
			resp, _ := m.call(t, "GET", "/who", "", append(credential, "X-Forwarded-For", from)...)
			if resp.StatusCode != want {
				t.Errorf("%s from %s gets %d", credential[0], from, resp.StatusCode)
			}
		}
	}
	if _, err := m.Bearer(context.Background(), "Bearer "+*token.Secret); err == nil {
		t.Error("taken from nowhere")
	}
	if got := history(t, w, w.A.Member.ID); !slices.Contains(got, "address_refused") {
		t.Errorf("the history is %v", got)
	}
}

package auth_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// A user who is inactive, or whose domain is inactive, cannot log in or use an old cookie, a token
// or a keypair, and no one can act as them.
func TestOnlyTheActiveAreLetIn(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	system := viewer.SystemContext(t.Context())
	p, _ := m.program(t, w, "ci")
	token, err := m.CreateAccessToken(w.As(t, w.A.Member), auth.CreateAccessTokenInput{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	cookie := m.logIn(t, w.A.Member.Email)
	outsider := w.Client.User.Create().SetEmail("out@example.org").SetUsername("out").SetRole(user.RoleSuperadmin).
		SetPasswordHash(w.A.Member.PasswordHash).SetDomain(w.B.Domain).SaveX(system)
	support := m.logIn(t, outsider.Email)
	doors := map[string]func() int{
		"password": func() int {
			resp, _ := m.loginWith(t, loginBody{Email: w.A.Member.Email})
			return resp.StatusCode
		},
		"cookie": func() int {
			resp, _ := m.call(t, "GET", "/who", "", "Cookie", cookie)
			return resp.StatusCode
		},
		"token": func() int {
			resp, _ := m.call(t, "GET", "/who", "", "Authorization", "Bearer "+*token.Secret)
			return resp.StatusCode
		},
		"keypair": func() int {
			resp, _ := p.call(t, m)
			return resp.StatusCode
		},
	}
	tryAll := func(what string, want int) {
		t.Helper()
		for door, enter := range doors {
			if got := enter(); got != want {
				t.Errorf("%s: %s gets %d, want %d", what, door, got, want)
			}
		}
		if _, got := m.acting(t, support, w.A.Member.Email); (got == http.StatusOK) != (want == http.StatusOK) {
			t.Errorf("%s: acting as the user gives %d", what, got)
		}
	}
	tryAll("active", http.StatusOK)
	for _, status := range []user.Status{user.StatusInactive, user.StatusBeforeVerification, user.StatusDeleted} {
		w.Client.User.UpdateOneID(w.A.Member.ID).SetStatus(status).ExecX(system)
		tryAll(string(status), http.StatusUnauthorized)
	}
	w.Client.User.UpdateOneID(w.A.Member.ID).SetStatus(user.StatusActive).ExecX(system)
	tryAll("active again", http.StatusOK)
	w.Client.Domain.UpdateOneID(w.A.ID).SetActive(false).ExecX(system)
	tryAll("inactive domain", http.StatusUnauthorized)
}

// A user who logs in with a password alone must enrol a second factor immediately if the domain
// requires one.
func TestSecondFactorIsNotShedWhereItIsAsked(t *testing.T) {
	w := identitytest.New(t)
	m := startSealed(t, w.Client)
	secret, codes := m.enrol(t, w, w.A.Member)
	w.Client.Domain.UpdateOneID(w.A.ID).SetTotpRequired(true).ExecX(viewer.SystemContext(t.Context()))
	resp, _ := m.loginWith(t, loginBody{Email: w.A.Member.Email, Code: app(t, secret, 0)})
	status(t, resp, http.StatusOK)
	cookie := resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	v := m.seen(t, cookie)
	if v.Due != "" {
		t.Fatalf("due before: %s", v.Due)
	}
	if err := m.DisableTotp(viewer.With(t.Context(), v), auth.DisableTotpInput{Password: identitytest.Password, Code: codes[0]}); err != nil {
		t.Fatal(err)
	}
	if v = m.seen(t, cookie); v.Due != viewer.DueTOTP || len(v.Projects) > 0 {
		t.Errorf("the open login continues as %v", v)
	}
	if _, body := m.loginWith(t, loginBody{Email: w.A.Member.Email}); !strings.Contains(body, `"due":"totp"`) {
		t.Errorf("a new login answers %s", body)
	}
}

// If one recovery code is used concurrently, one use succeeds.
func TestRecoveryCodeAtOnce(t *testing.T) {
	w := identitytest.New(t)
	m := startSealed(t, w.Client)
	_, codes := m.enrol(t, w, w.A.Member)
	var mu sync.Mutex
	got := map[int]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			resp, _ := m.loginWith(t, loginBody{Email: w.A.Member.Email, Code: codes[0]})
			mu.Lock()
			defer mu.Unlock()
			got[resp.StatusCode]++
		})
	}
	wg.Wait()
	if got[http.StatusOK] != 1 || got[http.StatusUnauthorized] != 7 {
		t.Errorf("one code, used by eight at once, gets %v", got)
	}
}

// A token of one project gives no access to another one, and none at all after its user has left
// the project.
func TestTokenOfOneProject(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	second := w.Client.Project.Create().SetName("second").SetDomain(w.A.Domain).SaveX(system)
	w.Client.Membership.Create().SetUser(w.A.Lead).SetProject(second).SetAdmin(true).ExecX(system)
	out, err := m.CreateAccessToken(w.As(t, w.A.Lead), auth.CreateAccessTokenInput{Name: "ci", Project: &w.A.Project.ID})
	if err != nil {
		t.Fatal(err)
	}
	if *out.AccessToken.ProjectID != w.A.Project.ID || out.AccessToken.LastUsedAt != nil {
		t.Errorf("made %v", out.AccessToken)
	}
	see := func() *viewer.Viewer {
		t.Helper()
		v, err := m.Bearer(t.Context(), "Bearer "+*out.Secret)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	begun := time.Now().Add(-time.Second)
	v := see()
	if !v.MemberOf(w.A.Project.ID) || v.MemberOf(second.ID) || v.ProjectAdminOf(second.ID) || v.Within != w.A.Project.ID {
		t.Errorf("the token is of %v", v)
	}
	elsewhere := access.Object{Domain: w.A.ID, Project: second.ID, Owner: w.A.Lead.ID}
	if v.May(access.Read, access.Session, elsewhere) || v.May(access.Create, access.Vfolder, elsewhere) {
		t.Error("it reaches another project")
	}
	if used := w.Client.AccessToken.GetX(system, out.AccessToken.ID).LastUsedAt; used == nil || used.Before(begun) {
		t.Errorf("last used %v", used)
	}
	people := newIdentity(w.Client, m)
	if _, err := people.RemoveMembership(w.As(t, w.A.Admin), identity.RemoveMembershipInput{Project: w.A.Project.ID, User: w.A.Lead.ID}); err != nil {
		t.Fatal(err)
	}
	if v := see(); len(v.Projects) != 0 || len(v.Admins) != 0 {
		t.Errorf("after the user left, the token is of %v", v)
	}
}

package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/accesstoken"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// bearer returns the viewer of a token, or nil if the token is rejected.
func (m *manager) bearer(t *testing.T, secret string) *viewer.Viewer {
	t.Helper()
	v, err := m.Bearer(t.Context(), "Bearer "+secret)
	if err != nil {
		code(t, err, problem.CodeUnauthenticated)
		return nil
	}
	return v
}

// tokenAs creates a token as a viewer.
func (m *manager) tokenAs(t *testing.T, v *viewer.Viewer, expires *time.Time) *auth.AccessTokenPayload {
	t.Helper()
	out, err := m.CreateAccessToken(viewer.With(t.Context(), v), auth.CreateAccessTokenInput{Name: "made", ExpiresAt: expires})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatATokenMakesEndsWithIt(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	system := viewer.SystemContext(t.Context())
	end := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	first := m.tokenAs(t, w.Viewer(t, w.A.Member), &end)
	byFirst := m.bearer(t, *first.Secret)
	later := end.Add(time.Hour)
	for _, asked := range []*time.Time{nil, &later} {
		made := m.tokenAs(t, byFirst, asked).AccessToken
		if made.ExpiresAt == nil || made.ExpiresAt.After(*first.AccessToken.ExpiresAt) || made.MakerID == nil || *made.MakerID != first.AccessToken.ID {
			t.Errorf("a token until %v makes one until %v, of %v", end, made.ExpiresAt, made.MakerID)
		}
	}
	second := m.tokenAs(t, byFirst, nil)
	third := m.tokenAs(t, m.bearer(t, *second.Secret), nil)
	ctx := viewer.With(t.Context(), byFirst)
	pair, err := m.CreateKeypair(ctx, auth.CreateKeypairInput{Name: "pair"})
	if err != nil || pair.Keypair.ExpiresAt == nil || !pair.Keypair.ExpiresAt.Equal(*first.AccessToken.ExpiresAt) {
		t.Fatalf("a token until %v makes the keypair %v, %v", end, pair, err)
	}
	key, err := m.CreateSSHKey(ctx, auth.CreateSSHKeyInput{Name: "key"})
	if err != nil || key.SSHKey.ExpiresAt == nil {
		t.Fatalf("created the ssh key %v, %v", key, err)
	}
	signing := viewer.Viewer(*byFirst)
	signing.Credential = pair.Keypair.ID
	fourth := m.tokenAs(t, &signing, nil)
	open := m.Watch(t.Context(), m.bearer(t, *third.Secret))
	if _, err := m.RevokeAccessToken(w.As(t, w.A.Member), auth.RevokeAccessTokenInput{ID: first.AccessToken.ID}); err != nil {
		t.Fatal(err)
	}
	ends(t, "connection with a token of a token", open)
	for name, secret := range map[string]string{"second": *second.Secret, "third": *third.Secret, "fourth": *fourth.Secret} {
		if m.bearer(t, secret) != nil {
			t.Errorf("the %s token lives on", name)
		}
	}
	if k := w.Client.Keypair.GetX(system, pair.Keypair.ID); k.Active {
		t.Error("the keypair lives on")
	}
	if n := w.Client.SSHKey.Query().CountX(system); n > 0 {
		t.Error("the SSH key lives on")
	}
	// A request whose token has just been revoked cannot create another token.
	_, err = m.CreateAccessToken(ctx, auth.CreateAccessTokenInput{Name: "late"})
	code(t, err, problem.CodeUnauthenticated)
}

func TestWhatAKeypairMakesEndsWithIt(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	own, no := w.As(t, w.A.Member), false
	for name, end := range map[string]func(k uuid.UUID) error{
		"rotated": func(k uuid.UUID) error { _, err := m.RotateKeypair(own, auth.RotateKeypairInput{ID: k}); return err },
		"deactivated": func(k uuid.UUID) error {
			_, err := m.UpdateKeypair(own, auth.UpdateKeypairInput{ID: k, Active: &no})
			return err
		},
		"deleted": func(k uuid.UUID) error {
			_, err := m.DeleteKeypair(own, auth.DeleteKeypairInput{ID: k})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			m.program(t, w, "before "+name) // the default one, which can only be deleted last
			_, made := m.program(t, w, name)
			v := w.Viewer(t, w.A.Member)
			v.Credential = made.Keypair.ID
			token := m.tokenAs(t, v, nil)
			if err := end(made.Keypair.ID); err != nil {
				t.Fatal(err)
			}
			if m.bearer(t, *token.Secret) != nil {
				t.Error("the token lives on")
			}
		})
	}
}

// A new secret that an expiring token creates for a keypair expires with the token.
func TestRotatedByAToken(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	_, made := m.program(t, w, "one")
	end := time.Now().Add(time.Hour)
	v := m.bearer(t, *m.tokenAs(t, w.Viewer(t, w.A.Member), &end).Secret)
	out, err := m.RotateKeypair(viewer.With(t.Context(), v), auth.RotateKeypairInput{ID: made.Keypair.ID})
	if err != nil || out.Keypair.ExpiresAt == nil || out.Keypair.MakerID == nil {
		t.Fatalf("rotated to %v, %v", out, err)
	}
	out, err = m.RotateKeypair(w.As(t, w.A.Member), auth.RotateKeypairInput{ID: made.Keypair.ID})
	if err != nil || out.Keypair.ExpiresAt != nil || out.Keypair.MakerID != nil {
		t.Errorf("rotated with a login to %v, %v", out, err)
	}
	p := program{key: out.Keypair.AccessKey, secret: *out.Secret}
	resp, _ := p.call(t, m)
	status(t, resp, http.StatusOK)
	w.Client.Keypair.UpdateOneID(made.Keypair.ID).SetExpiresAt(time.Now().Add(-time.Second)).ExecX(viewer.SystemContext(t.Context()))
	resp, _ = p.call(t, m)
	status(t, resp, http.StatusUnauthorized)
}

func TestTokensAreCountedOneByOne(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	ctx := w.As(t, w.A.Member)
	var refused atomic.Int32
	var wg sync.WaitGroup
	for range 130 {
		wg.Go(func() {
			if _, err := m.CreateAccessToken(ctx, auth.CreateAccessTokenInput{Name: "one of many"}); err != nil {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if n := w.Client.AccessToken.Query().Where(accesstoken.UserID(w.A.Member.ID)).CountX(viewer.SystemContext(t.Context())); n != 100 {
		t.Errorf("%d tokens were created and %d rejected, want 100 and 30", n, refused.Load())
	}
}

func TestEverythingEnds(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	people := identity.New(identity.Config{Client: w.Client, Logins: m.Service})
	system, yes := viewer.SystemContext(t.Context()), true
	for i, c := range []struct {
		name string
		keep bool
		do   func() error
	}{
		{"one's own new password", true, func() error {
			return m.ChangePassword(w.As(t, w.A.Member), auth.ChangePasswordInput{Current: identitytest.Password, New: "four other words"})
		}},
		{"one's own new password, with all credentials", false, func() error {
			return m.ChangePassword(w.As(t, w.A.Member), auth.ChangePasswordInput{Current: "four other words", New: identitytest.Password, EndCredentials: &yes})
		}},
		{"a reset that keeps credentials", true, func() error {
			_, err := m.ResetUserPassword(w.As(t, w.A.Admin), auth.ResetUserPasswordInput{User: w.A.Member.ID, KeepCredentials: &yes})
			return err
		}},
		{"a reset", false, func() error {
			_, err := m.ResetUserPassword(w.As(t, w.A.Admin), auth.ResetUserPasswordInput{User: w.A.Member.ID})
			return err
		}},
		{"a deactivation that keeps credentials", true, func() error { return inactiveAndBack(t, people, w, &yes) }},
		{"a deactivation", false, func() error { return inactiveAndBack(t, people, w, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, made := m.program(t, w, fmt.Sprint("pair ", i))
			token := m.tokenAs(t, w.Viewer(t, w.A.Member), nil)
			if _, err := m.CreateSSHKey(w.As(t, w.A.Member), auth.CreateSSHKeyInput{Name: "key"}); err != nil {
				t.Fatal(err)
			}
			if err := c.do(); err != nil {
				t.Fatal(err)
			}
			resp, _ := p.call(t, m)
			got := []bool{m.bearer(t, *token.Secret) != nil, resp.StatusCode == http.StatusOK, w.Client.SSHKey.Query().CountX(system) > 0}
			for n, what := range []string{"access token", "keypair", "SSH key"} {
				if got[n] != c.keep {
					t.Errorf("the %s is taken: %v, want %v", what, got[n], c.keep)
				}
			}
			if c.keep {
				return
			}
			// After reactivation, the old secret of a keypair is no longer valid.
			if _, err := m.UpdateKeypair(w.As(t, w.A.Member), auth.UpdateKeypairInput{ID: made.Keypair.ID, Active: &yes}); err != nil {
				t.Fatal(err)
			}
			resp, _ = p.call(t, m)
			status(t, resp, http.StatusUnauthorized)
		})
	}
}

// inactiveAndBack deactivates a user and activates them again.
func inactiveAndBack(t *testing.T, people *identity.Service, w *identitytest.World, keep *bool) error {
	t.Helper()
	off, on := user.StatusInactive, user.StatusActive
	_, err := people.UpdateUser(w.As(t, w.A.Admin), identity.UpdateUserInput{ID: w.A.Member.ID, Status: &off, KeepCredentials: keep})
	_, back := people.UpdateUser(w.As(t, w.A.Admin), identity.UpdateUserInput{ID: w.A.Member.ID, Status: &on})
	return errors.Join(err, back)
}

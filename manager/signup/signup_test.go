package signup_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/signup"
)

type setup struct {
	*identitytest.World
	service *signup.Service
	mux     *http.ServeMux
}

func newSetup(t *testing.T, mode domain.SignUp) *setup {
	t.Helper()
	s := &setup{World: identitytest.New(t), mux: http.NewServeMux()}
	log := slog.New(slog.DiscardHandler)
	a := auth.New(auth.Config{Client: s.Client, Passwords: identitytest.Hasher(), Bus: event.New(nil, log), Logger: log})
	s.service = signup.New(signup.Config{Client: s.Client, Auth: a, Passwords: identitytest.Hasher(), Logger: log})
	s.service.Register(s.mux)
	a.Register(s.mux)
	s.Client.Domain.UpdateOne(s.A.Domain).SetSignUp(mode).ExecX(viewer.SystemContext(t.Context()))
	return s
}

func (s *setup) as(u *ent.User) context.Context {
	return viewer.With(context.Background(), &viewer.Viewer{User: u.ID, Domain: u.DomainID, Role: viewer.Role(u.Role)})
}

func (s *setup) post(path string, body map[string]string) (int, string) {
	b, _ := json.Marshal(body)
	r := httptest.NewRequest("POST", path, strings.NewReader(string(b)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (s *setup) signUp(email, invitation, domain string) (int, string) {
	return s.post("/auth/signup", map[string]string{
		"email": email, "password": identitytest.Password, "invitation": invitation, "domain": domain,
	})
}

func (s *setup) users(t *testing.T) int {
	return s.Client.User.Query().CountX(viewer.SystemContext(t.Context()))
}

func TestOffIsNotThere(t *testing.T) {
	s := newSetup(t, domain.SignUpOff)
	before := s.users(t)
	for _, name := range []string{"", s.A.Name, "nowhere"} {
		if code, body := s.signUp("new@example.org", "", name); code != http.StatusNotFound {
			t.Errorf("domain %q: %d %s", name, code, body)
		}
	}
	if code, _ := s.signUp("new@example.org", "made up", ""); code != http.StatusNotFound {
		t.Errorf("with an invitation: %d", code)
	}
	if n := s.users(t); n != before {
		t.Errorf("%d rows were created", n-before)
	}
}

// Every client can read how to sign up, and this does not count as an attempt.
func TestOffer(t *testing.T) {
	s := newSetup(t, domain.SignUpOff)
	ctx := viewer.With(context.Background(), &viewer.Viewer{})
	for _, c := range []struct {
		a, b domain.SignUp
		want signup.SignUpOffer
	}{
		{domain.SignUpOff, domain.SignUpOff, signup.SignUpOffer{Mode: domain.SignUpOff}},
		{domain.SignUpInvitation, domain.SignUpOff, signup.SignUpOffer{Mode: domain.SignUpInvitation}},
		{domain.SignUpApproval, domain.SignUpInvitation, signup.SignUpOffer{Mode: domain.SignUpApproval, Named: true}},
		{domain.SignUpInvitation, domain.SignUpApproval, signup.SignUpOffer{Mode: domain.SignUpApproval, Named: true}},
	} {
		s.Client.Domain.UpdateOne(s.A.Domain).SetSignUp(c.a).ExecX(viewer.SystemContext(t.Context()))
		s.Client.Domain.UpdateOne(s.B.Domain).SetSignUp(c.b).ExecX(viewer.SystemContext(t.Context()))
		for range 30 {
			got, err := s.service.Offer(ctx)
			if err != nil || *got != c.want {
				t.Fatalf("%s and %s: %+v, %v", c.a, c.b, got, err)
			}
		}
	}
	s.Client.Domain.UpdateOne(s.B.Domain).SetActive(false).ExecX(viewer.SystemContext(t.Context()))
	if got, err := s.service.Offer(ctx); err != nil || got.Mode != domain.SignUpInvitation || got.Named {
		t.Errorf("with one domain not active: %+v, %v", got, err)
	}
}

func TestApproval(t *testing.T) {
	s := newSetup(t, domain.SignUpApproval)
	ctx := viewer.SystemContext(t.Context())
	before := s.users(t)
	code, body := s.signUp("New@Example.org", "", "")
	if code != http.StatusAccepted {
		t.Fatal(code, body)
	}
	again, same := s.signUp(s.A.Member.Email, "", "")
	if again != code || same != body {
		t.Errorf("a known e-mail: %d %s, an unknown one: %d %s", again, same, code, body)
	}
	if n := s.users(t); n != before+1 {
		t.Errorf("%d users more, want 1", n-before)
	}
	u := s.Client.User.Query().Where(user.Email("new@example.org")).OnlyX(ctx)
	login := map[string]string{"email": u.Email, "password": identitytest.Password}
	if code, _ := s.post("/auth/login", login); u.Status != user.StatusBeforeVerification || code != http.StatusUnauthorized {
		t.Errorf("%s logs in: %d", u.Status, code)
	}
	s.Client.User.UpdateOne(u).SetStatus(user.StatusActive).ExecX(ctx)
	if code, body := s.post("/auth/login", login); code != http.StatusOK {
		t.Errorf("approved: %d %s", code, body)
	}
	for least, p := range map[int]string{8: "seven77", 16: identitytest.Password} {
		s.Client.Domain.UpdateOne(s.A.Domain).SetPasswordMinLength(least).ExecX(ctx)
		if code, _ := s.post("/auth/signup", map[string]string{"email": "x@example.org", "password": p}); code != http.StatusBadRequest {
			t.Errorf("a password of less than %d characters: %d", least, code)
		}
	}
	if code, _ := s.post("/auth/signup", map[string]string{"email": "x@example.org", "password": identitytest.Password, "role": "SUPERADMIN"}); code != http.StatusBadRequest {
		t.Errorf("with a role: %d", code)
	}
}

func TestInvitation(t *testing.T) {
	s := newSetup(t, domain.SignUpInvitation)
	ctx := viewer.SystemContext(t.Context())
	in := signup.CreateInvitationInput{Email: "Guest@Example.org", Domain: s.A.ID, Project: &s.A.Project.ID}
	member := s.as(s.A.Member)
	viewer.From(member).Projects = []uuid.UUID{s.A.Project.ID}
	if _, err := s.service.CreateInvitation(member, in); !has(err, problem.CodePermissionDenied) {
		t.Errorf("a member invites: %v", err)
	}
	if _, err := s.service.CreateInvitation(s.as(s.B.Admin), in); !has(err, problem.CodeNotFound) {
		t.Errorf("a foreign admin invites: %v", err)
	}
	made, err := s.service.CreateInvitation(s.as(s.A.Admin), in)
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := s.signUp("guest@example.org", "", ""); code != http.StatusForbidden {
		t.Errorf("without it: %d", code)
	}
	if code, _ := s.signUp("third@example.org", *made.Secret, ""); code != http.StatusForbidden {
		t.Errorf("a third party: %d", code)
	}
	if code, body := s.signUp("guest@example.org", *made.Secret, ""); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	if code, _ := s.signUp("guest@example.org", *made.Secret, ""); code != http.StatusForbidden {
		t.Errorf("twice: %d", code)
	}
	u := s.Client.User.Query().Where(user.Email("guest@example.org")).WithMemberships().OnlyX(ctx)
	if u.Status != user.StatusActive || u.Role != user.RoleUser || len(u.Edges.Memberships) != 1 || u.DomainID != s.A.ID {
		t.Errorf("made %v", u)
	}
	if _, err := s.service.RevokeInvitation(s.as(s.A.Admin), signup.RevokeInvitationInput{ID: made.Invitation.ID}); !has(err, problem.CodeFailedPrecondition) {
		t.Errorf("revoke a used one: %v", err)
	}
}

func TestRevokedInvitation(t *testing.T) {
	s := newSetup(t, domain.SignUpInvitation)
	made, err := s.service.CreateInvitation(s.as(s.A.Admin), signup.CreateInvitationInput{Email: "guest@example.org", Domain: s.A.ID})
	if err != nil {
		t.Fatal(err)
	}
	in := signup.RevokeInvitationInput{ID: made.Invitation.ID}
	if _, err := s.service.RevokeInvitation(s.as(s.B.Admin), in); !has(err, problem.CodeNotFound) {
		t.Errorf("a foreign admin: %v", err)
	}
	if out, err := s.service.RevokeInvitation(s.as(s.A.Admin), in); err != nil || out.Invitation.RevokedAt == nil {
		t.Errorf("revoked %v, %v", out, err)
	}
	if code, _ := s.signUp("guest@example.org", *made.Secret, ""); code != http.StatusForbidden {
		t.Errorf("revoked, and taken: %d", code)
	}
	if _, err := s.service.RevokeInvitation(s.as(s.A.Admin), signup.RevokeInvitationInput{ID: uuid.New()}); !has(err, problem.CodeNotFound) {
		t.Errorf("none: %v", err)
	}
}

func TestThrottled(t *testing.T) {
	s := newSetup(t, domain.SignUpApproval)
	for range 20 {
		s.signUp("no address", "", "")
	}
	if code, _ := s.signUp("new@example.org", "", ""); code != http.StatusTooManyRequests {
		t.Errorf("the 21st: %d", code)
	}
}

// Attempts of others at the same address do not lock out an invited person.
func TestInvitedAreNotLockedOut(t *testing.T) {
	s := newSetup(t, domain.SignUpApproval)
	made, err := s.service.CreateInvitation(s.as(s.A.Admin), signup.CreateInvitationInput{Email: "guest@example.org", Domain: s.A.ID})
	if err != nil {
		t.Fatal(err)
	}
	for range 21 {
		s.signUp("no address", "an invitation that there is not", "")
	}
	if code, _ := s.signUp("new@example.org", "", ""); code != http.StatusTooManyRequests {
		t.Errorf("another user at the address: %d", code)
	}
	if code, body := s.signUp("guest@example.org", *made.Secret, ""); code != http.StatusCreated {
		t.Errorf("who was invited: %d %s", code, body)
	}
	for range 20 {
		s.signUp("guest@example.org", *made.Secret, "")
	}
	if code, _ := s.signUp("guest@example.org", *made.Secret, ""); code != http.StatusTooManyRequests {
		t.Errorf("one invitation again and again: %d", code)
	}
}

func has(err error, code string) bool {
	p, _ := problem.From(err)
	return err != nil && p.Code == code
}

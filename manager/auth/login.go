package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// maxLoginBody is far more than an e-mail address and a password need.
const maxLoginBody = 16 << 10

// Register adds the routes under /auth. They check credentials themselves and must not be
// wrapped in Authenticate: a client with an expired cookie must be able to log in.
func (s *Service) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST /auth/login", s.handle(s.logIn))
	mux.HandleFunc("POST /auth/logout", s.handle(s.logOut))
	mux.HandleFunc("GET /auth/session", s.handle(s.session))
}

func (s *Service) handle(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := f(w, s.addressed(r)); err != nil {
			s.fail(w, r, err)
		}
	}
}

// answer is the answer to a login, and to a request for the current login.
type answer struct {
	User struct {
		ID    uuid.UUID `json:"id"`
		Email string    `json:"email"`
		Role  string    `json:"role"`
	} `json:"user"`
	InitialPassword bool       `json:"initialPassword"`
	ExpiresAt       *time.Time `json:"expiresAt"`
	// Due is the action that is required before anything else: password or totp.
	Due string `json:"due,omitempty"`
}

func (s *Service) logIn(w http.ResponseWriter, r *http.Request) error {
	in, err := readLogin(w, r)
	if err != nil {
		return err
	}
	in.Email = strings.ToLower(strings.TrimSpace(in.Email))
	from := s.ClientAddress(r)
	known, err := s.familiar(r, in.Email)
	if err != nil {
		return err
	}
	succeeded, wait := s.throttle.take(r.Context(), loginBuckets(in.Email, from, known))
	if wait > 0 {
		s.log.WarnContext(r.Context(), "logins throttled", "address", from)
		s.note(r, nil, in.Email, loginattempt.ResultThrottled)
		return problem.Exhausted("too many attempts, try again later").RetryAfter(wait)
	}
	u, result, err := s.verify(r.Context(), in.Email, in.Password, from)
	if err != nil {
		return err
	}
	if result != loginattempt.ResultSuccess {
		s.log.InfoContext(r.Context(), "login refused", "address", from, "result", result)
		s.note(r, u, in.Email, result)
		return errLogin()
	}
	b := beginning{
		user: u, method: loginsession.MethodPassword, code: in.Code, force: in.Force,
		secret: newCookie(), expires: clock.Now().Add(loginLife), old: s.oldLogin(r),
		codes: codeBuckets(u.ID, in.Code, from, known),
	}
	if result, err = s.begin(r, &b); err != nil {
		if result != "" {
			s.note(r, u, in.Email, result)
		}
		return fmt.Errorf("begin login: %w", err)
	}
	succeeded(r.Context())
	s.cut(r.Context(), b.ended)
	s.setCookie(w, r, b.secret, int(loginLife.Seconds()))
	s.log.InfoContext(r.Context(), "logged in", "user", u.ID, "address", from)
	c, err := s.login(r.Context(), b.secret)
	if err != nil {
		return err
	}
	s.remember(w, r, c.viewer)
	return write(w, c.answer())
}

// answer returns the user of a credential.
func (c *credential) answer() (out answer) {
	out.User.ID, out.User.Email, out.User.Role = c.viewer.User, c.viewer.Email, string(c.viewer.Role)
	out.InitialPassword, out.ExpiresAt, out.Due = c.initialPassword, c.expires, string(c.viewer.Due)
	return out
}

type loginBody struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Code     string `json:"code"`  // second factor, or a recovery code
	Force    bool   `json:"force"` // end the oldest login if the limit is reached
}

// readLogin accepts only JSON, which a form of another origin cannot send.
func readLogin(w http.ResponseWriter, r *http.Request) (in loginBody, err error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return in, problem.Invalid("Content-Type", "must be application/json")
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLoginBody))
	if err := d.Decode(&in); err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			return in, err
		}
		return in, problem.Invalid("", "the body is not valid JSON of a login").Because(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return in, problem.Invalid("", "the body contains more than one JSON object")
	}
	if in.Email == "" || in.Password == "" {
		return in, problem.Invalid("", "email and password are required")
	}
	return in, nil
}

// errLogin is the same for an unknown user, a wrong password and a user who cannot log in now.
func errLogin() error { return problem.Unauthenticated("incorrect e-mail or password") }

// verify returns the user of an e-mail address and a password. It takes the same time whether
// the user exists or not. Unless the result is success, the user is only for the login
// history.
func (s *Service) verify(ctx context.Context, email, pass string, from netip.Addr) (*ent.User, loginattempt.Result, error) {
	ctx = viewer.SystemContext(ctx)
	u, open, err := s.findUser(ctx, email)
	if err != nil {
		return nil, "", err
	}
	stored := ""
	if u != nil {
		stored = u.PasswordHash
	}
	ok, stale, err := s.passwords.Check(ctx, stored, pass)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("check password: %w", err)
	case !ok:
		return u, loginattempt.ResultWrongCredentials, nil
	case !open || u.Status != user.StatusActive:
		return u, loginattempt.ResultNotActive, nil
	case !fromAllowed(u.AllowedAddresses, from):
		return u, loginattempt.ResultAddressRefused, nil
	case stale:
		return s.rehash(ctx, u, pass), loginattempt.ResultSuccess, nil
	}
	return u, loginattempt.ResultSuccess, nil
}

// findUser returns the user of an e-mail address, and reports whether the user's domain is active.
// It makes as many queries for an unknown user as for a known one.
func (s *Service) findUser(ctx context.Context, email string) (u *ent.User, open bool, err error) {
	if !utf8.ValidString(email) || strings.ContainsRune(email, 0) {
		return nil, false, nil // the database rejects such text, and no user has it
	}
	u, err = s.client.User.Query().Where(user.Email(email)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, false, fmt.Errorf("look up user: %w", err)
	}
	open, err = s.client.User.Query().Where(user.Email(email), user.HasDomainWith(domain.Active(true))).Exist(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("look up domain: %w", err)
	}
	return u, open, nil
}

// rehash updates a hash to the current cost. A failure does not fail the login.
func (s *Service) rehash(ctx context.Context, u *ent.User, pass string) *ent.User {
	hash, err := s.passwords.Hash(ctx, pass)
	var after *ent.User
	if err == nil {
		// only if the hash is unchanged: the password may be changing concurrently
		after, err = s.client.User.UpdateOne(u).Where(user.PasswordHash(u.PasswordHash)).SetPasswordHash(hash).Save(ctx)
	}
	if err != nil {
		s.log.WarnContext(ctx, "hash password again", "user", u.ID, "error", err)
		return u
	}
	return after
}

const maxUserAgent = 256

// oldLogin returns the previous login of the browser, or zero.
func (s *Service) oldLogin(r *http.Request) uuid.UUID {
	secret := s.cookie(r)
	if secret == "" || r.Header.Get(CSRFHeader) == "" {
		return uuid.Nil
	}
	c, err := s.login(r.Context(), secret)
	if err != nil {
		return uuid.Nil // it had already ended
	}
	return c.viewer.Credential
}

func (s *Service) logOut(w http.ResponseWriter, r *http.Request) error {
	if secret := s.cookie(r); secret != "" {
		c, err := s.login(r.Context(), secret)
		if p, _ := problem.From(err); err != nil && p.Code != problem.CodeUnauthenticated {
			return err
		}
		if err == nil {
			if err := s.ownPage(r); err != nil {
				return err
			}
			if err := s.end(r.Context(), loginattempt.ResultLogout, loginsession.ID(c.viewer.Credential)); err != nil {
				return fmt.Errorf("end login: %w", err)
			}
			s.log.InfoContext(r.Context(), "logged out", "user", c.viewer.User)
		}
		s.setCookie(w, r, "", -1)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Service) session(w http.ResponseWriter, r *http.Request) error {
	secret := s.cookie(r)
	if secret == "" {
		return problem.Unauthenticated("you are not logged in")
	}
	c, err := s.login(r.Context(), secret)
	if err != nil {
		return err
	}
	s.remember(w, r, c.viewer) // again, because a new password invalidates earlier device cookies
	return write(w, c.answer())
}

func write(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client may have disconnected
	return nil
}

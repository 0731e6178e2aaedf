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
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// maxLoginBody is far more than an e-mail and a password need.
const maxLoginBody = 16 << 10

// Register adds the routes under /auth. They look at credentials themselves and
// must not be wrapped in Authenticate: who has an old cookie must be able to log in.
func (s *Service) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST /auth/login", s.handle(s.logIn))
	mux.HandleFunc("POST /auth/logout", s.handle(s.logOut))
	mux.HandleFunc("GET /auth/session", s.handle(s.session))
}

func (s *Service) handle(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := f(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// answer is what a login and its later look-up say.
type answer struct {
	User struct {
		ID    uuid.UUID `json:"id"`
		Email string    `json:"email"`
		Role  string    `json:"role"`
	} `json:"user"`
	InitialPassword bool       `json:"initialPassword"`
	ExpiresAt       *time.Time `json:"expiresAt"`
}

func (s *Service) logIn(w http.ResponseWriter, r *http.Request) error {
	in, err := readLogin(w, r)
	if err != nil {
		return err
	}
	u, err := s.verify(r.Context(), in.Email, in.Password, s.ClientAddress(r))
	if err != nil {
		return err
	}
	s.endOld(r)
	secret := newCookie()
	expires := now().Add(loginLife)
	if err := s.begin(r, u, secret, expires); err != nil {
		return fmt.Errorf("begin login: %w", err)
	}
	s.setCookie(w, r, secret, int(loginLife.Seconds()))
	s.log.InfoContext(r.Context(), "logged in", "user", u.ID, "address", s.ClientAddress(r))
	var out answer
	out.User.ID, out.User.Email, out.User.Role = u.ID, u.Email, string(u.Role)
	out.InitialPassword, out.ExpiresAt = u.InitialPassword, &expires
	return write(w, out)
}

type loginBody struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// readLogin takes JSON only, which a form of another origin cannot send.
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
		return in, problem.Invalid("", "the body is not the JSON of a login").Because(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return in, problem.Invalid("", "the body holds more than a login")
	}
	if in.Email == "" || in.Password == "" {
		return in, problem.Invalid("", "email and password are needed")
	}
	return in, nil
}

// errLogin is the same for an unknown user, a wrong password and a user who may
// not log in now.
func errLogin() error { return problem.Unauthenticated("the e-mail or the password is wrong") }

// verify finds the user of an e-mail and a password. It takes the same time
// whether there is one or not, and slows down who guesses.
func (s *Service) verify(ctx context.Context, email, pass string, from netip.Addr) (*ent.User, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	succeeded, wait := s.throttle.take(ctx, loginBuckets(email, from))
	if wait > 0 {
		s.log.WarnContext(ctx, "logins throttled", "address", from)
		return nil, problem.Exhausted("too many attempts, try again later").RetryAfter(wait)
	}
	ctx = viewer.SystemContext(ctx)
	u, err := s.findActive(ctx, email)
	if err != nil {
		return nil, err
	}
	stored := ""
	if u != nil {
		stored = u.PasswordHash
	}
	ok, stale, err := s.passwords.Check(ctx, stored, pass)
	if err != nil {
		return nil, fmt.Errorf("check password: %w", err)
	}
	if !ok {
		s.log.InfoContext(ctx, "login refused", "address", from)
		return nil, errLogin()
	}
	succeeded(ctx)
	if stale {
		return s.rehash(ctx, u, pass), nil
	}
	return u, nil
}

// findActive returns nil for a user who may not log in.
func (s *Service) findActive(ctx context.Context, email string) (*ent.User, error) {
	if !utf8.ValidString(email) || strings.ContainsRune(email, 0) {
		return nil, nil // the database refuses such text, and nobody is called so
	}
	u, err := s.client.User.Query().
		Where(user.Email(email), user.StatusEQ(user.StatusActive), user.HasDomainWith(domain.Active(true))).
		Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up user: %w", err)
	}
	return u, nil
}

// rehash brings a hash to today's cost; the login goes on without it.
func (s *Service) rehash(ctx context.Context, u *ent.User, pass string) *ent.User {
	hash, err := s.passwords.Hash(ctx, pass)
	var after *ent.User
	if err == nil {
		// only over the hash that was checked: the password may just be changing
		after, err = s.client.User.UpdateOne(u).Where(user.PasswordHash(u.PasswordHash)).SetPasswordHash(hash).Save(ctx)
	}
	if err != nil {
		s.log.WarnContext(ctx, "hash password again", "user", u.ID, "error", err)
		return u
	}
	return after
}

const maxUserAgent = 256

func (s *Service) begin(r *http.Request, u *ent.User, secret string, expires time.Time) error {
	ctx := viewer.SystemContext(r.Context())
	agent := strings.ToValidUTF8(strings.ReplaceAll(r.UserAgent(), "\x00", ""), "")
	if len(agent) > maxUserAgent {
		agent = strings.ToValidUTF8(agent[:maxUserAgent], "")
	}
	address := ""
	if a := s.ClientAddress(r); a.IsValid() {
		address = a.String()
	}
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	// The user's row first, and as it was checked: a password change or a
	// deactivation at the same time either sees this login or refuses it.
	n, err := tx.User.Update().
		Where(user.ID(u.ID), user.PasswordHash(u.PasswordHash), user.StatusEQ(user.StatusActive)).
		SetLastLoginAt(now()).Save(ctx)
	if err != nil {
		return err
	}
	if n == 0 {
		return errLogin()
	}
	err = tx.LoginSession.Create().
		SetHash(hash(secret)).SetUserID(u.ID).SetExpiresAt(expires).SetClientAddress(address).SetUserAgent(agent).
		Exec(ctx)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// endOld ends the login that the browser had until now.
func (s *Service) endOld(r *http.Request) {
	secret := s.cookie(r)
	if secret == "" || r.Header.Get(CSRFHeader) == "" {
		return
	}
	c, err := s.login(r.Context(), secret)
	if err != nil {
		return // it was over already
	}
	if err := s.end(r.Context(), c.viewer.Credential); err != nil {
		s.log.WarnContext(r.Context(), "end the old login", "user", c.viewer.User, "error", err)
	}
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
			if err := s.end(r.Context(), c.viewer.Credential); err != nil {
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
		return problem.Unauthenticated("nobody is logged in")
	}
	c, err := s.login(r.Context(), secret)
	if err != nil {
		return err
	}
	var out answer
	out.User.ID, out.User.Email, out.User.Role = c.viewer.User, c.viewer.Email, string(c.viewer.Role)
	out.InitialPassword, out.ExpiresAt = c.initialPassword, c.expires
	return write(w, out)
}

func write(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the asker may be gone, and nobody else to tell
	return nil
}

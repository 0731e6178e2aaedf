// Package signup lets people create their own user if a domain allows it: with an invitation,
// or with an admin's approval. It is off by default, and then its routes return not found. The
// manager mounts it.
package signup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/invitation"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/store"
)

const (
	maxBody     = 16 << 10 // far more than needed
	maxFullName = 128      // characters
	mostTries   = 20       // per address, or per invitation, within the throttle's window
)

// Config has the dependencies of a Service.
type Config struct {
	Client    *ent.Client
	Auth      *auth.Service
	Passwords *password.Hasher
	Logger    *slog.Logger
}

// Service handles sign-ups and invitations.
type Service struct {
	client    *ent.Client
	auth      *auth.Service
	passwords *password.Hasher
	log       *slog.Logger
}

// New returns a Service.
func New(cfg Config) *Service {
	return &Service{client: cfg.Client, auth: cfg.Auth, passwords: cfg.Passwords, log: cfg.Logger}
}

// Register adds the route.
func (s *Service) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST /auth/signup", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := s.signUp(w, r); err != nil && !problem.WriteHTTP(w, r, err) {
			s.log.ErrorContext(r.Context(), "sign up", "error", err)
		}
	})
}

// form is the body of a sign-up.
type form struct {
	Email      string `json:"email"`
	Username   string `json:"username"`
	FullName   string `json:"fullName"`
	Password   string `json:"password"`
	Domain     string `json:"domain"` // name; an invitation contains its own
	Invitation string `json:"invitation"`
}

// signUp answers "pending" if an admin must approve, whether the user exists or not, and
// "active" for an invitation.
func (s *Service) signUp(w http.ResponseWriter, r *http.Request) error {
	in, err := read(w, r)
	if err != nil {
		return err
	}
	from := s.auth.ClientAddress(r)
	wait, err := s.throttle(r.Context(), in, from)
	if err != nil {
		return err
	}
	if wait > 0 {
		s.log.WarnContext(r.Context(), "sign-ups throttled", "address", from)
		return problem.Exhausted("too many attempts, try again later").RetryAfter(wait)
	}
	ctx := viewer.SystemContext(r.Context())
	code, status := http.StatusAccepted, "pending"
	if in.Invitation != "" {
		code, status = http.StatusCreated, "active"
		err = s.byInvitation(ctx, in)
	} else {
		err = s.byApproval(ctx, in)
	}
	if err != nil {
		return err
	}
	s.log.InfoContext(ctx, "signed up", "status", status, "address", from)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, "{\"status\":%q}\n", status)
	return nil
}

// throttle counts an attempt. An attempt with an existing invitation counts only for the
// invitation, so that others at a shared address cannot lock out the invited person.
func (s *Service) throttle(ctx context.Context, in form, from netip.Addr) (wait time.Duration, err error) {
	if in.Invitation != "" {
		inv, err := s.client.Invitation.Query().Where(invitation.Hash(hash(in.Invitation))).OnlyID(viewer.SystemContext(ctx))
		if err == nil {
			return s.auth.ThrottleOf(ctx, "invitation", inv, mostTries), nil
		}
		if !ent.IsNotFound(err) {
			return 0, fmt.Errorf("read invitation: %w", err)
		}
	}
	_, wait = s.auth.Throttle(ctx, "signup", from, mostTries)
	return wait, nil
}

// read accepts only JSON, which a form of another origin cannot send.
func read(w http.ResponseWriter, r *http.Request) (in form, err error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return in, problem.Invalid("Content-Type", "must be application/json")
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields() // rejects fields such as a role
	if err := d.Decode(&in); err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			return in, err
		}
		return in, problem.Invalid("", "the body is not valid JSON of a sign-up").Because(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return in, problem.Invalid("", "the body contains more than one JSON object")
	}
	return in, nil
}

// errOff is the same for a domain that does not allow sign-up and for one that does not exist.
func errOff() error { return problem.NotFound("sign-up") }

// byApproval creates a user that waits for approval. For an existing user, it returns the same
// after the same work.
func (s *Service) byApproval(ctx context.Context, in form) error {
	d, err := s.open(ctx, in.Domain)
	if err != nil {
		return err
	}
	if d.SignUp == domain.SignUpInvitation {
		return problem.Forbidden("an invitation is required").WithField("invitation")
	}
	p, err := s.check(ctx, in, d)
	if err != nil {
		return err
	}
	p.Status = user.StatusBeforeVerification
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		_, err := Join(ctx, tx, p)
		return err
	})
	if ent.IsConstraintError(err) {
		s.log.InfoContext(ctx, "sign-up of a known person ignored")
		return nil
	}
	return err
}

// open returns the domain that allows sign-up: the named one, or the only one.
func (s *Service) open(ctx context.Context, name string) (*ent.Domain, error) {
	q := s.client.Domain.Query().Where(domain.Active(true), domain.SignUpNEQ(domain.SignUpOff))
	if name != "" {
		if naming.Name("domain", name) != nil {
			return nil, errOff()
		}
		q.Where(domain.Name(name))
	}
	list, err := q.Limit(2).All(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read domains: %w", err)
	case len(list) == 0:
		return nil, errOff()
	case len(list) > 1:
		return nil, problem.Invalid("domain", "must not be empty")
	}
	return list[0], nil
}

// check validates a form and converts it to the stored form.
func (s *Service) check(ctx context.Context, in form, d *ent.Domain) (Person, error) {
	p := Person{FullName: strings.TrimSpace(in.FullName), Domain: d.ID}
	var err error
	if p.Email, err = identity.Email(in.Email); err != nil {
		return p, err
	}
	p.Username = strings.ToLower(in.Username)
	if p.Username == "" {
		p.Username = Handle(p.Email)
	}
	if err := naming.Handle("username", p.Username); err != nil {
		return p, err
	}
	if err := naming.Line("fullName", p.FullName, maxFullName); err != nil {
		return p, err
	}
	if err := password.RulesOf(d).Check("password", in.Password, p.Email, p.Username); err != nil {
		return p, err
	}
	p.PasswordHash, err = s.passwords.Hash(ctx, in.Password)
	return p, err
}

package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// BeginExternal logs in a user whom an identity provider vouches for: the
// browser gets the cookie, the history a line. A user who may not log in now is
// refused as a failed precondition, one from a wrong address as forbidden.
func (s *Service) BeginExternal(w http.ResponseWriter, r *http.Request, u *ent.User) error {
	if !fromAllowed(u.AllowedAddresses, s.ClientAddress(r)) {
		return problem.Forbidden("logins of this user are not taken from this address")
	}
	secret, expires := newCookie(), now().Add(loginLife)
	if err := s.beginExternal(r, u, secret, expires); err != nil {
		return fmt.Errorf("begin login: %w", err)
	}
	s.setCookie(w, r, secret, int(loginLife.Seconds()))
	return nil
}

func (s *Service) beginExternal(r *http.Request, u *ent.User, secret string, expires time.Time) error {
	ctx := viewer.SystemContext(r.Context())
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	// the user's row first: a deactivation at the same time sees this login or refuses it
	n, err := tx.User.Update().
		Where(user.ID(u.ID), user.StatusEQ(user.StatusActive), user.HasDomainWith(domain.Active(true))).
		SetLastLoginAt(now()).Save(ctx)
	if err != nil {
		return err
	}
	if n == 0 {
		return problem.Precondition("the user is not active")
	}
	address, agent := s.origin(r)
	login, err := tx.LoginSession.Create().
		SetHash(hash(secret)).SetUserID(u.ID).SetExpiresAt(expires).SetMethod(loginsession.MethodOidc).
		SetClientAddress(address).SetUserAgent(agent).
		Save(ctx)
	if err != nil {
		return err
	}
	err = tx.LoginAttempt.Create().
		SetUserID(u.ID).SetDomainID(u.DomainID).SetEmail(u.Email).SetLoginID(login.ID).
		SetMethod(loginattempt.MethodOidc).SetResult(loginattempt.ResultSuccess).
		SetClientAddress(address).SetUserAgent(agent).
		Exec(ctx)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// ExternalRefusal is a login by an identity provider that failed. What is not
// known of the user is zero.
type ExternalRefusal struct {
	User, Domain uuid.UUID
	Email        string
	Result       loginattempt.Result
}

// RefuseExternal writes a failed login by an identity provider into the history.
func (s *Service) RefuseExternal(r *http.Request, x ExternalRefusal) error {
	address, agent := s.origin(r)
	c := s.client.LoginAttempt.Create().
		SetEmail(x.Email).SetMethod(loginattempt.MethodOidc).SetResult(x.Result).SetClientAddress(address).SetUserAgent(agent)
	if x.User != uuid.Nil {
		c.SetUserID(x.User)
	}
	if x.Domain != uuid.Nil {
		c.SetDomainID(x.Domain)
	}
	return c.Exec(viewer.SystemContext(r.Context()))
}

// origin is the address and the browser that rows about a login keep.
func (s *Service) origin(r *http.Request) (address, agent string) {
	agent = strings.ToValidUTF8(strings.ReplaceAll(r.UserAgent(), "\x00", ""), "")
	if len(agent) > maxUserAgent {
		agent = strings.ToValidUTF8(agent[:maxUserAgent], "")
	}
	if a := s.ClientAddress(r); a.IsValid() {
		address = a.String()
	}
	return address, agent
}

// fromAllowed tells whether an address is in one of the prefixes; none allow all.
func fromAllowed(prefixes []string, a netip.Addr) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(text string) bool {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			single, err := netip.ParseAddr(text)
			return err == nil && single == a
		}
		return p.Contains(a)
	})
}

// PublicURL is where the browser reaches us, such as https://berth.example. What
// X-Forwarded-Host says counts from a trusted proxy alone.
func (s *Service) PublicURL(r *http.Request) string {
	scheme, host := "http", r.Host
	if s.overTLS(r) {
		scheme = "https"
	}
	if said := r.Header.Get("X-Forwarded-Host"); said != "" && s.trusts(parseAddress(r.RemoteAddr)) {
		hops := strings.Split(said, ",") // the nearest proxy wrote the last one
		host = strings.TrimSpace(hops[len(hops)-1])
	}
	return scheme + "://" + host
}

// OverTLS tells whether the browser speaks TLS, to us or to a trusted proxy.
func (s *Service) OverTLS(r *http.Request) bool { return s.overTLS(r) }

// Throttle counts one attempt at something that is open to everybody. A wait
// says that it must not be made; one that went well may be forgotten.
func (s *Service) Throttle(ctx context.Context, what string, from netip.Addr, most int) (forget func(context.Context), wait time.Duration) {
	return s.throttle.take(ctx, []bucket{{what + ":" + network(from), most}})
}

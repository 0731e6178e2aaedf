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
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// BeginExternal logs in a user that an identity provider has confirmed: it sets the cookie and
// writes the login history. With force, it ends the oldest login if the limit is reached. An
// error has its result for RefuseExternal.
func (s *Service) BeginExternal(w http.ResponseWriter, r *http.Request, u *ent.User, force bool) (loginattempt.Result, error) {
	if !fromAllowed(u.AllowedAddresses, s.ClientAddress(r)) {
		return loginattempt.ResultAddressRefused, problem.Forbidden("this user may not log in from this address")
	}
	b := beginning{
		user: u, method: loginsession.MethodOidc, force: force,
		secret: newCookie(), expires: clock.Now().Add(loginLife), old: s.oldLogin(r),
	}
	result, err := s.begin(r, &b)
	if err != nil {
		return result, fmt.Errorf("begin login: %w", err)
	}
	s.cut(r.Context(), b.ended)
	s.setCookie(w, r, b.secret, int(loginLife.Seconds()))
	c, err := s.login(r.Context(), b.secret)
	if err != nil {
		return "", err
	}
	s.remember(w, r, c.viewer)
	return result, nil
}

// ExternalRefusal is a failed login by an identity provider. Unknown fields are zero.
type ExternalRefusal struct {
	User, Domain uuid.UUID
	Email        string
	Result       loginattempt.Result
}

// RefuseExternal writes a failed login by an identity provider to the login history.
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

// origin returns the address and the browser for rows about a login.
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

// fromAllowed reports whether an address is in one of the prefixes; an empty list allows all.
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

// PublicURL returns the manager's URL for the browser, such as https://berth.example: the
// configured one, or one from the Host of the request. X-Forwarded-Host is used only if a
// trusted proxy sets it.
func (s *Service) PublicURL(r *http.Request) string {
	if s.public != "" {
		return s.public
	}
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

// OverTLS reports whether the browser uses TLS, to the manager or to a trusted proxy.
func (s *Service) OverTLS(r *http.Request) bool { return s.overTLS(r) }

// ThrottleLogin counts one attempt at a login by an identity provider: per device for known
// devices, per address for others. It returns as Throttle does.
func (s *Service) ThrottleLogin(r *http.Request, what string, most int) (forget func(context.Context), wait time.Duration) {
	if list := s.devices(r); len(list) > 0 {
		return s.throttle.take(r.Context(), []bucket{{what + ":" + list[0].ID.String(), most}})
	}
	return s.Throttle(r.Context(), what, s.ClientAddress(r), most)
}

// Throttle counts one attempt at an operation that is open to everyone. If it returns a wait,
// the attempt must not be made; otherwise, it returns a function that removes a successful
// attempt from the count.
func (s *Service) Throttle(ctx context.Context, what string, from netip.Addr, most int) (forget func(context.Context), wait time.Duration) {
	return s.throttle.take(ctx, []bucket{{what + ":" + network(from), most}})
}

// ThrottleOf counts one attempt with an object's id, from any address. If it returns a wait,
// the attempt must not be made.
func (s *Service) ThrottleOf(ctx context.Context, what string, id uuid.UUID, most int) (wait time.Duration) {
	_, wait = s.throttle.take(ctx, []bucket{{what + ":" + id.String(), most}})
	return wait
}

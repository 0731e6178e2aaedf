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
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/policyattachment"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcepolicy"
	"github.com/berthhq/berth/ent/user"
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
// devices, per address for others. The results are those of Throttle.
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

// beginning is a login in progress, after the password or the identity provider has confirmed the
// user.
type beginning struct {
	user    *ent.User // as read at the check
	method  loginsession.Method
	code    string
	force   bool
	secret  string
	expires time.Time
	old     uuid.UUID // the browser's previous login
	codes   []bucket  // that count attempts at the second factor

	ended []*ent.LoginSession // ended because of the limit of logins
}

// begin creates the login, all or nothing. An error has its result for the login history.
func (s *Service) begin(r *http.Request, b *beginning) (loginattempt.Result, error) {
	if wait := s.tooManyCodes(r.Context(), b); wait > 0 {
		return loginattempt.ResultThrottled, problem.Exhausted("too many attempts, try again later").RetryAfter(wait)
	}
	ctx := viewer.SystemContext(r.Context())
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return "", err
	}
	defer tx.Rollback() // no effect after a commit
	// The user's row is locked first and compared with the checked one. A concurrent password
	// change or deactivation thus either sees this login or prevents it, and two concurrent
	// logins count each other.
	known := b.method == loginsession.MethodPassword
	q := tx.User.Query().Where(user.ID(b.user.ID), user.StatusEQ(user.StatusActive), user.HasDomainWith(domain.Active(true)))
	if known {
		q.Where(user.PasswordHash(b.user.PasswordHash))
	}
	u, err := q.ForUpdate().Only(ctx)
	switch {
	case ent.IsNotFound(err) && known:
		return loginattempt.ResultWrongCredentials, errLogin()
	case ent.IsNotFound(err):
		return loginattempt.ResultNotActive, problem.Precondition("the user is not active")
	case err != nil:
		return "", err
	}
	if known && u.TotpEnabledAt != nil { // otherwise the provider checks the second factor
		if b.code == "" {
			return loginattempt.ResultCodeNeeded, problem.Unauthenticated("enter a code of your second factor").WithField("code")
		}
		ok, err := s.useCode(ctx, tx, u, b.code)
		if err != nil {
			return "", err
		}
		if !ok {
			return loginattempt.ResultWrongCode, problem.Unauthenticated("the code of your second factor is wrong").WithField("code")
		}
	}
	if b.ended, err = finish(ctx, tx, loginattempt.ResultLogout, loginsession.ID(b.old)); err != nil {
		return "", err
	}
	evicted, err := makeRoom(ctx, tx, u, b.force)
	if err != nil {
		if p, _ := problem.From(err); p.Code == problem.CodeFailedPrecondition {
			return loginattempt.ResultTooManyLogins, err
		}
		return "", err
	}
	b.ended = append(b.ended, evicted...)
	if err := s.record(ctx, tx, r, b); err != nil {
		return "", err
	}
	if err := tx.Commit(); err != nil {
		return "", err
	}
	s.forgetCodes(r.Context(), b.codes)
	return loginattempt.ResultSuccess, nil
}

// record writes the rows of a new login.
func (s *Service) record(ctx context.Context, tx *ent.Tx, r *http.Request, b *beginning) error {
	if err := tx.User.UpdateOneID(b.user.ID).SetLastLoginAt(clock.Now()).Exec(ctx); err != nil {
		return err
	}
	address, agent := s.origin(r)
	l, err := tx.LoginSession.Create().
		SetHash(hash(b.secret)).SetUserID(b.user.ID).SetExpiresAt(b.expires).SetMethod(b.method).SetClientAddress(address).SetUserAgent(agent).
		Save(ctx)
	if err != nil {
		return err
	}
	return tx.LoginAttempt.Create().
		SetUserID(b.user.ID).SetDomainID(b.user.DomainID).SetEmail(b.user.Email).SetLoginID(l.ID).
		SetMethod(loginattempt.Method(b.method)).SetResult(loginattempt.ResultSuccess).SetClientAddress(address).SetUserAgent(agent).
		Exec(ctx)
}

// makeRoom checks the limit of logins of a user whose row is locked: the smallest of all
// policies that apply to them everywhere. With force, it ends the oldest logins.
func makeRoom(ctx context.Context, tx *ent.Tx, u *ent.User, force bool) ([]*ent.LoginSession, error) {
	strictest, err := tx.ResourcePolicy.Query().
		Where(resourcepolicy.MaxLoginsNotNil(), resourcepolicy.HasAttachmentsWith(binds(u))).
		Order(resourcepolicy.ByMaxLogins(), resourcepolicy.ByID()).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	limit := *strictest.MaxLogins
	open, err := tx.LoginSession.Query().Where(loginsession.UserID(u.ID), living()).
		Order(loginsession.ByCreatedAt(), loginsession.ByID()).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("count logins: %w", err)
	}
	if len(open) < limit {
		return nil, nil
	}
	if limit <= 0 {
		return nil, problem.Precondition("the policy %s allows no logins", strictest.Name).WithField("logins").WithLimit("0")
	}
	if !force {
		return nil, problem.Precondition("you have as many logins as the policy %s allows; log out elsewhere first", strictest.Name).
			WithField("force").WithLimit(fmt.Sprint(limit))
	}
	return finish(ctx, tx, loginattempt.ResultEvicted, loginsession.IDIn(open[:len(open)-limit+1]...))
}

// binds matches policies that apply to a user everywhere: their own, their domain's and their
// projects'.
func binds(u *ent.User) predicate.PolicyAttachment {
	return policyattachment.And(
		policyattachment.WithinProjectIDIsNil(), policyattachment.ResourceGroupIDIsNil(),
		policyattachment.Or(
			policyattachment.UserID(u.ID), policyattachment.DomainID(u.DomainID),
			policyattachment.HasProjectWith(project.HasMembershipsWith(membership.UserID(u.ID))),
		),
	)
}

package auth

import (
	"context"
	"fmt"
	"net/http"
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

// beginning is a login in progress, after the password was verified or an identity provider
// has confirmed the user.
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

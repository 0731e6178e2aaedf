package auth

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/permit"
)

// ChangePasswordInput is the old password, as proof of identity, and the new one.
type ChangePasswordInput struct {
	Current        string
	New            string
	EndCredentials *bool // also revoke access tokens, keypairs and SSH keys; nil: no
}

// ChangePassword sets a new password and ends all other logins of the viewer. If requested, it
// revokes all their other credentials.
func (s *Service) ChangePassword(ctx context.Context, in ChangePasswordInput) error {
	v, err := self(ctx)
	if err != nil {
		return err
	}
	if in.New == in.Current {
		return problem.Invalid("new", "must not be the current password")
	}
	u, err := s.client.User.Get(ctx, v.User)
	if err != nil {
		return fmt.Errorf("read user: %w", err)
	}
	rules, err := s.rules(ctx, u)
	if err != nil {
		return err
	}
	if err := rules.Check("new", in.New, u.Email, u.Username); err != nil {
		return err
	}
	succeeded, wait := s.throttle.take(ctx, ownBuckets("change", v))
	if wait > 0 {
		return problem.Exhausted("too many attempts, try again later").RetryAfter(wait)
	}
	ok, _, err := s.passwords.Check(ctx, u.PasswordHash, in.Current)
	if err != nil {
		return fmt.Errorf("check password: %w", err)
	}
	if !ok {
		return problem.Invalid("current", "is not the current password")
	}
	succeeded(ctx)
	hash, err := s.passwords.Hash(ctx, in.New)
	if err != nil {
		return err
	}
	err = s.setPassword(ctx, u, newPassword{hash: hash, keep: v.Credential, endAll: is(in.EndCredentials)})
	if err != nil {
		return fmt.Errorf("change password: %w", err)
	}
	return nil
}

// resetLength is the length of generated passwords, which gives more than 110 bits.
const resetLength = 20

// ResetUserPasswordInput names the user; an empty password is generated.
type ResetUserPasswordInput struct {
	User            uuid.UUID
	Password        *string
	KeepCredentials *bool // access tokens, keypairs and SSH keys; nil: revoke them
}

// ResetUserPasswordPayload has a generated password, which is shown only once.
type ResetUserPasswordPayload struct {
	User     *ent.User
	Password *string
}

// ResetTotpInput names the user.
type ResetTotpInput struct{ User uuid.UUID }

// ResetTotpPayload is the user, without the second factor.
type ResetTotpPayload struct{ User *ent.User }

// ResetUserPassword sets the password of another user, who must change it. It ends all their
// logins and, unless the input keeps them, revokes their other credentials.
func (s *Service) ResetUserPassword(ctx context.Context, in ResetUserPasswordInput) (*ResetUserPasswordPayload, error) {
	u, err := s.resettable(ctx, in.User)
	if err != nil {
		return nil, err
	}
	rules, err := s.rules(ctx, u)
	if err != nil {
		return nil, err
	}
	out := &ResetUserPasswordPayload{}
	if in.Password == nil {
		made := password.Generate(max(resetLength, rules.MinLength))
		in.Password, out.Password = &made, &made
	} else if err := rules.Check("password", *in.Password, u.Email, u.Username); err != nil {
		return nil, err
	}
	hash, err := s.passwords.Hash(ctx, *in.Password)
	if err != nil {
		return nil, err
	}
	err = s.setPassword(ctx, u, newPassword{hash: hash, required: true, endAll: !is(in.KeepCredentials)})
	if err != nil {
		return nil, fmt.Errorf("reset password: %w", err)
	}
	out.User, err = s.client.User.Get(ctx, u.ID)
	return out, err
}

// ResetTotp removes the second factor of a user who has lost it.
func (s *Service) ResetTotp(ctx context.Context, in ResetTotpInput) (*ResetTotpPayload, error) {
	u, err := s.resettable(ctx, in.User)
	if err != nil {
		return nil, err
	}
	system := viewer.SystemContext(ctx)
	tx, err := s.client.Tx(system)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // no effect after a commit
	if err := clearTotp(system, tx, u.ID); err != nil {
		return nil, fmt.Errorf("turn off second factor: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	u, err = s.client.User.Get(ctx, u.ID)
	return &ResetTotpPayload{User: u}, err
}

// resettable returns a user whose credentials the viewer can replace. With them, the viewer
// could act as the user, so the user must not have more permissions than the viewer.
func (s *Service) resettable(ctx context.Context, id uuid.UUID) (*ent.User, error) {
	u, err := s.client.User.Get(ctx, id)
	if ent.IsNotFound(err) {
		return nil, problem.NotFound("user").WithField("user")
	}
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	v, err := permit.Check(ctx, access.Update, access.User, access.Object{ID: u.ID, Domain: u.DomainID, Owner: u.ID})
	if err != nil {
		return nil, err
	}
	if u.ID == v.User {
		return nil, problem.Forbidden("change your own password and second factor in your account settings")
	}
	if v.Superadmin() {
		return u, nil
	}
	above := u.Role != user.RoleUser && (v.Role != viewer.RoleAdmin || u.Role != user.RoleAdmin)
	if !above {
		above, err = s.client.RoleGrant.Query().
			Where(rolegrant.UserID(u.ID), rolegrant.Not(rolegrant.ScopeID(v.Domain))).
			Exist(viewer.SystemContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("read roles: %w", err)
		}
	}
	if above {
		return nil, problem.Forbidden("this user has a higher role than yours")
	}
	return u, nil
}

// rules returns the password rules of the user's domain.
func (s *Service) rules(ctx context.Context, u *ent.User) (password.Rules, error) {
	d, err := s.client.Domain.Get(viewer.SystemContext(ctx), u.DomainID)
	if err != nil {
		return password.Rules{}, fmt.Errorf("read domain: %w", err)
	}
	return password.RulesOf(d), nil
}

// newPassword describes the change of a password.
type newPassword struct {
	hash     string
	keep     uuid.UUID // the login that is kept
	required bool      // the user must change it at the next login
	endAll   bool      // also revoke access tokens, keypairs and SSH keys
}

// setPassword stores the hash and ends all logins of the user but one, and with endAll revokes
// their other credentials.
func (s *Service) setPassword(ctx context.Context, u *ent.User, p newPassword) error {
	system := viewer.SystemContext(ctx)
	tx, err := s.client.Tx(system)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after a commit
	n, err := tx.User.Update().
		Where(user.ID(u.ID), user.PasswordHash(u.PasswordHash)).
		SetPasswordHash(p.hash).SetInitialPassword(false).SetPasswordChangeRequired(p.required).SetPasswordChangedAt(clock.Now()).
		Save(system)
	if err != nil {
		return err
	}
	if n == 0 {
		return problem.Aborted("another request changed the password at the same time")
	}
	logins, err := finish(system, tx, loginattempt.ResultRevoked, loginsession.UserID(u.ID), loginsession.IDNEQ(p.keep))
	if err != nil {
		return err
	}
	var others []uuid.UUID
	if p.endAll {
		if others, err = s.EndCredentials(system, tx, u.ID); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.cut(ctx, logins)
	s.disconnect(ctx, others)
	return nil
}

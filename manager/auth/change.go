package auth

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/identity/password"
)

// ChangePasswordInput is the old password, to prove it is really him, and the new.
type ChangePasswordInput struct {
	Current string
	New     string
}

// ChangePassword gives the viewer a new password and ends all his other logins.
func (s *Service) ChangePassword(ctx context.Context, in ChangePasswordInput) error {
	v, err := person(ctx)
	if err != nil {
		return err
	}
	if err := password.Validate("new", in.New); err != nil {
		return err
	}
	if in.New == in.Current {
		return problem.Invalid("new", "must not be the current password")
	}
	succeeded, wait := s.throttle.take(ctx, []bucket{{"change:" + v.User.String(), mostPair}})
	if wait > 0 {
		return problem.Exhausted("too many attempts, try again later").RetryAfter(wait)
	}
	u, err := s.client.User.Get(ctx, v.User)
	if err != nil {
		return fmt.Errorf("read user: %w", err)
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
	ended, err := s.setPassword(ctx, u, hash, v.Credential)
	if err != nil {
		return fmt.Errorf("change password: %w", err)
	}
	for _, login := range ended {
		s.Disconnect(ctx, login)
	}
	return nil
}

// setPassword writes the hash and returns the logins it ended: all but keep.
func (s *Service) setPassword(ctx context.Context, u *ent.User, hash string, keep uuid.UUID) ([]uuid.UUID, error) {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // after a commit it does nothing
	n, err := tx.User.Update().
		Where(user.ID(u.ID), user.PasswordHash(u.PasswordHash)).
		SetPasswordHash(hash).SetInitialPassword(false).Save(ctx)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, problem.Aborted("the password was changed at the same time")
	}
	ids, err := tx.LoginSession.Query().
		Where(loginsession.UserID(u.ID), loginsession.RevokedAtIsNil(), loginsession.IDNEQ(keep)).
		IDs(ctx)
	if err != nil {
		return nil, err
	}
	if err := tx.LoginSession.Update().Where(loginsession.IDIn(ids...)).SetRevokedAt(now()).Exec(ctx); err != nil {
		return nil, err
	}
	return ids, tx.Commit()
}

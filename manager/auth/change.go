package auth

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/internal/problem"
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

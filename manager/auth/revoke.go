package auth

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// RevokeLoginSessionInput names the login to end.
type RevokeLoginSessionInput struct{ ID uuid.UUID }

// LoginSessionPayload is the login that was ended.
type LoginSessionPayload struct{ ID uuid.UUID }

// RevokeLoginSession ends a login of one's own, or anybody's as superadmin, with
// its open connections.
func (s *Service) RevokeLoginSession(ctx context.Context, in RevokeLoginSessionInput) (*LoginSessionPayload, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	l, err := s.client.LoginSession.Get(ctx, in.ID)
	if ent.IsNotFound(err) {
		return nil, problem.NotFound("login").WithField("id")
	}
	if err != nil {
		return nil, fmt.Errorf("read login: %w", err)
	}
	if l.UserID != v.User && !v.Superadmin() {
		return nil, problem.Forbidden("you cannot end the logins of others")
	}
	if err := s.end(ctx, l.ID); err != nil {
		return nil, fmt.Errorf("end login: %w", err)
	}
	return &LoginSessionPayload{ID: l.ID}, nil
}

// end revokes a login and cuts off what was opened with it.
func (s *Service) end(ctx context.Context, login uuid.UUID) error {
	err := s.client.LoginSession.Update().
		Where(loginsession.ID(login), loginsession.RevokedAtIsNil()).
		SetRevokedAt(now()).Exec(ctx)
	if err != nil {
		return err
	}
	s.Disconnect(ctx, login)
	return nil
}

// person returns the viewer when it is a user.
func person(ctx context.Context) (*viewer.Viewer, error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() || v.IsSystem() {
		return nil, problem.Unauthenticated("log in first")
	}
	return v, nil
}

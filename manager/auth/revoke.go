package auth

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// RevokeLoginSessionInput names the login to end.
type RevokeLoginSessionInput struct{ ID uuid.UUID }

// LoginSessionPayload is the id of the ended login.
type LoginSessionPayload struct{ ID uuid.UUID }

// RevokeLoginSession ends a login of the viewer, or of a user whose logins they can end, and
// closes its connections.
func (s *Service) RevokeLoginSession(ctx context.Context, in RevokeLoginSessionInput) (*LoginSessionPayload, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	missing := problem.NotFound("login").WithField("id")
	l, err := s.client.LoginSession.Query().Where(loginsession.ID(in.ID)).WithUser().Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("read login: %w", err)
	}
	on := credentialOf(l.Edges.User)
	if !v.May(access.Delete, access.Credential, on) && !v.May(access.Read, access.Credential, on) {
		return nil, missing
	}
	if _, err := permit.Check(ctx, access.Delete, access.Credential, on); err != nil {
		return nil, err
	}
	if err := s.end(ctx, loginattempt.ResultRevoked, loginsession.ID(l.ID)); err != nil {
		return nil, fmt.Errorf("end login: %w", err)
	}
	return &LoginSessionPayload{ID: l.ID}, nil
}

// Logins returns the valid logins of the viewer, or of a user whose logins they can see or
// end.
func (s *Service) Logins(ctx context.Context, of *uuid.UUID) ([]*ent.LoginSession, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	if of == nil || *of == v.User {
		return s.client.LoginSession.Query().Where(loginsession.UserID(v.User), living()).
			Order(loginsession.ByCreatedAt()).All(ctx)
	}
	u, err := s.client.User.Get(ctx, *of)
	if err != nil {
		return nil, permit.Missing(err, "user", "user")
	}
	if on := credentialOf(u); !v.May(access.Delete, access.Credential, on) && !v.May(access.Read, access.Credential, on) {
		return nil, problem.Forbidden("you may not see the logins of this user")
	}
	return s.client.LoginSession.Query().Where(loginsession.UserID(u.ID), living()).
		Order(loginsession.ByCreatedAt()).All(viewer.SystemContext(ctx))
}

// credentialOf returns the scopes of a user's credentials.
func credentialOf(u *ent.User) access.Object { return access.Object{Domain: u.DomainID, Owner: u.ID} }

// person returns the viewer if it is a user.
func person(ctx context.Context) (*viewer.Viewer, error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() || v.IsSystem() {
		return nil, problem.Unauthenticated("log in first")
	}
	return v, nil
}

// self returns the viewer if it is the user in person: without a token or keypair, and not
// another user who acts as them.
func self(ctx context.Context) (*viewer.Viewer, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	if k := id.KindOf(v.Credential); k == id.AccessToken || k == id.Keypair || v.Scopes != nil || v.Actor != uuid.Nil {
		return nil, problem.Forbidden("only a login with a password may change passwords and second factors")
	}
	return v, nil
}

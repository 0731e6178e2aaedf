package auth

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/accesstoken"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// CreateAccessTokenInput describes a new access token.
type CreateAccessTokenInput struct {
	Name      string
	Scopes    []access.TokenScope // nil: all scopes of the viewer
	Project   *uuid.UUID          // the only project that it gives access to; nil: all
	ExpiresAt *time.Time
}

// RevokeAccessTokenInput names the token to end.
type RevokeAccessTokenInput struct{ ID uuid.UUID }

// AccessTokenPayload is a token; the secret is set only after its creation.
type AccessTokenPayload struct {
	AccessToken *ent.AccessToken
	Secret      *string
}

// maxTokens is the limit of valid tokens per user.
const maxTokens = 100

// CreateAccessToken creates a token with the permissions of its user, or fewer. A token that
// is created with a token or keypair has at most its permissions, and expires no later.
func (s *Service) CreateAccessToken(ctx context.Context, in CreateAccessTokenInput) (*AccessTokenPayload, error) {
	v, err := s.maker(ctx)
	if err != nil {
		return nil, err
	}
	if err := naming.Name("name", in.Name); err != nil {
		return nil, err
	}
	scopes, err := scopesFor(v, in.Scopes)
	if err != nil {
		return nil, err
	}
	within, err := projectFor(v, in.Project)
	if err != nil {
		return nil, err
	}
	t := clock.Now()
	if in.ExpiresAt != nil && !in.ExpiresAt.After(t) {
		return nil, problem.Invalid("expiresAt", "must be in the future")
	}
	tx, err := s.changeOf(ctx, v.User)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // after a commit it does nothing
	o, err := originOf(ctx, tx, v)
	if err != nil {
		return nil, err
	}
	n, err := tx.AccessToken.Query().Where(
		accesstoken.UserID(v.User), accesstoken.RevokedAtIsNil(),
		accesstoken.Or(accesstoken.ExpiresAtIsNil(), accesstoken.ExpiresAtGT(t)),
	).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count access tokens: %w", err)
	}
	if n >= maxTokens {
		return nil, problem.Exhausted("you have %d valid access tokens, revoke one first", n).WithLimit(fmt.Sprint(maxTokens))
	}
	secret := newToken()
	token, err := tx.AccessToken.Create().
		SetName(in.Name).SetPrefix(secret[:shown]).SetHash(hash(secret)).SetNillableMakerID(o.id).
		SetScopes(scopes).SetNillableProjectID(within).SetNillableExpiresAt(o.until(in.ExpiresAt)).SetUserID(v.User).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create access token: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return &AccessTokenPayload{AccessToken: token.Unwrap(), Secret: &secret}, nil
}

// RevokeAccessToken revokes a token of the viewer, or any token as superadmin, together with its
// connections and the credentials that were created with it. Revoking it again changes nothing.
func (s *Service) RevokeAccessToken(ctx context.Context, in RevokeAccessTokenInput) (*AccessTokenPayload, error) {
	if _, err := person(ctx); err != nil {
		return nil, err
	}
	token, err := s.client.AccessToken.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "access token", "id")
	}
	on, err := s.credentialOf(ctx, token.ID, token.UserID)
	if err != nil {
		return nil, err
	}
	if _, err := permit.Check(ctx, access.Delete, access.Credential, on); err != nil {
		return nil, err
	}
	tx, err := s.changeOf(ctx, token.UserID)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // after a commit it does nothing
	if token.RevokedAt == nil {
		if token, err = tx.AccessToken.UpdateOneID(token.ID).SetRevokedAt(clock.Now()).Save(ctx); err != nil {
			return nil, fmt.Errorf("revoke access token: %w", err)
		}
		token = token.Unwrap()
	}
	made, err := s.endMade(ctx, tx, token.ID)
	if err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	s.disconnect(ctx, append(made, token.ID))
	return &AccessTokenPayload{AccessToken: token}, nil
}

// scopesFor returns the scopes of a new token, sorted and without duplicates.
func scopesFor(v *viewer.Viewer, asked []access.TokenScope) ([]string, error) {
	for _, scope := range asked {
		if !slices.Contains(access.TokenScopes(), scope) {
			return nil, problem.Invalid("scopes", "%q is not a scope", scope)
		}
		if !v.Allows(scope) {
			return nil, problem.Forbidden("the access token lacks the scope %s and cannot grant it", scope).WithField("scopes")
		}
	}
	if asked != nil && len(asked) == 0 {
		return nil, problem.Invalid("scopes", "must name at least one scope")
	}
	var list []string
	for _, scope := range access.TokenScopes() {
		if asked == nil && v.Allows(scope) || slices.Contains(asked, scope) {
			list = append(list, string(scope))
		}
	}
	return list, nil
}

// projectFor returns the project of a new token: one of the viewer's, and the same as that of a
// token that creates it.
func projectFor(v *viewer.Viewer, asked *uuid.UUID) (*uuid.UUID, error) {
	if asked == nil {
		if v.Within == uuid.Nil {
			return nil, nil
		}
		return &v.Within, nil
	}
	if !v.MemberOf(*asked) {
		return nil, problem.NotFound("project").WithField("project")
	}
	return asked, nil
}

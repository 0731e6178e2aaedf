package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/accesstoken"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
)

// CreateAccessTokenInput is what a new access token is made of.
type CreateAccessTokenInput struct {
	Name      string
	ExpiresAt *time.Time
}

// RevokeAccessTokenInput names the token to end.
type RevokeAccessTokenInput struct{ ID uuid.UUID }

// AccessTokenPayload is a token, with its secret once, when it is created.
type AccessTokenPayload struct {
	AccessToken *ent.AccessToken
	Secret      *string
}

// maxTokens is how many valid tokens a user may have.
const maxTokens = 100

// CreateAccessToken makes a token with the rights of its user.
func (s *Service) CreateAccessToken(ctx context.Context, in CreateAccessTokenInput) (*AccessTokenPayload, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	if err := naming.Name("name", in.Name); err != nil {
		return nil, err
	}
	t := now()
	if in.ExpiresAt != nil && !in.ExpiresAt.After(t) {
		return nil, problem.Invalid("expiresAt", "must be in the future")
	}
	n, err := s.client.AccessToken.Query().Where(
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
	token, err := s.client.AccessToken.Create().
		SetName(in.Name).SetPrefix(secret[:shown]).SetHash(hash(secret)).SetScopes(allScopes()).SetNillableExpiresAt(in.ExpiresAt).SetUserID(v.User).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create access token: %w", err)
	}
	return &AccessTokenPayload{AccessToken: token, Secret: &secret}, nil
}

// RevokeAccessToken ends a token of one's own, or anybody's as superadmin, with
// what was opened with it. Revoking it again changes nothing.
func (s *Service) RevokeAccessToken(ctx context.Context, in RevokeAccessTokenInput) (*AccessTokenPayload, error) {
	v, err := person(ctx)
	if err != nil {
		return nil, err
	}
	token, err := s.client.AccessToken.Get(ctx, in.ID)
	if ent.IsNotFound(err) {
		return nil, problem.NotFound("access token").WithField("id")
	}
	if err != nil {
		return nil, fmt.Errorf("read access token: %w", err)
	}
	if token.UserID != v.User && !v.Superadmin() {
		return nil, problem.Forbidden("you cannot revoke the tokens of others")
	}
	if token.RevokedAt == nil {
		if token, err = token.Update().SetRevokedAt(now()).Save(ctx); err != nil {
			return nil, fmt.Errorf("revoke access token: %w", err)
		}
	}
	s.Disconnect(ctx, token.ID)
	return &AccessTokenPayload{AccessToken: token}, nil
}

func allScopes() []string {
	var list []string
	for _, scope := range access.TokenScopes() {
		list = append(list, string(scope))
	}
	return list
}

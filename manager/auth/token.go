package auth

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
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

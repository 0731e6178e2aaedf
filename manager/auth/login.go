package auth

import "github.com/google/uuid"

// RevokeLoginSessionInput names the login to end.
type RevokeLoginSessionInput struct{ ID uuid.UUID }

// LoginSessionPayload is the login that was ended.
type LoginSessionPayload struct{ ID uuid.UUID }

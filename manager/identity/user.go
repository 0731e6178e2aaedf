package identity

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
)

// CreateUserInput is what a new user is made of.
type CreateUserInput struct {
	Email    string
	Username string
	FullName *string
	Password string
	Role     *user.Role
	Domain   uuid.UUID
	Projects []uuid.UUID
	Policy   *uuid.UUID
}

// UpdateUserInput changes what is not nil. ClearPolicy detaches the policy.
type UpdateUserInput struct {
	ID          uuid.UUID
	FullName    *string
	Role        *user.Role
	Status      *user.Status
	Policy      *uuid.UUID
	ClearPolicy *bool
}

// UserPayload is a user after a change.
type UserPayload struct{ User *ent.User }

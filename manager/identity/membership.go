package identity

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
)

// SetMembershipInput makes a user a member of a project, or changes whether the
// member administers it. Without Admin a member stays what he is.
type SetMembershipInput struct {
	Project uuid.UUID
	User    uuid.UUID
	Admin   *bool
}

// RemoveMembershipInput takes a user out of a project.
type RemoveMembershipInput struct {
	Project uuid.UUID
	User    uuid.UUID
}

// MembershipPayload is the project whose members changed.
type MembershipPayload struct{ Project *ent.Project }

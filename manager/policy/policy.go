package policy

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/resource"
)

// CreateResourcePolicyInput is what a new policy is made of; nil means no limit.
type CreateResourcePolicyInput struct {
	Name               string
	TotalSlots         resource.Slots
	MaxSessions        *int
	MaxPendingSessions *int
	MaxVfolders        *int
	MaxScopeBytes      *int64
}

// UpdateResourcePolicyInput changes what is not nil; -1 takes a limit away.
type UpdateResourcePolicyInput struct {
	ID                 uuid.UUID
	TotalSlots         resource.Slots
	MaxSessions        *int
	MaxPendingSessions *int
	MaxVfolders        *int
	MaxScopeBytes      *int64
}

// ResourcePolicyPayload is a policy after a change.
type ResourcePolicyPayload struct{ Policy *ent.ResourcePolicy }

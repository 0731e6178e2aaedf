package policy

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
)

// AttachResourcePolicyInput attaches a policy to exactly one of domain, project
// and user; without a policy it detaches.
type AttachResourcePolicyInput struct {
	Policy  *uuid.UUID
	Domain  *uuid.UUID
	Project *uuid.UUID
	User    *uuid.UUID
}

// AttachResourcePolicyPayload is the policy that is attached now, nil for none.
type AttachResourcePolicyPayload struct{ Policy *ent.ResourcePolicy }

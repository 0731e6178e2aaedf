package identity

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
)

// CreateDomainInput is what a new domain is made of.
type CreateDomainInput struct {
	Name        string
	Description *string
	Policy      *uuid.UUID
}

// DomainPayload is a domain after a change.
type DomainPayload struct{ Domain *ent.Domain }

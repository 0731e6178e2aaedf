package identity

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
)

// CreateProjectInput is what a new project is made of.
type CreateProjectInput struct {
	Name        string
	Description *string
	Domain      uuid.UUID
	Policy      *uuid.UUID
}

// ProjectPayload is a project after a change.
type ProjectPayload struct{ Project *ent.Project }

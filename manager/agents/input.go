package agents

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/jointoken"
)

// UpdateAgentInput cordons, opens or moves an agent.
type UpdateAgentInput struct {
	ID            uuid.UUID
	Schedulable   *bool
	ResourceGroup *uuid.UUID
}

// CreateJoinTokenInput says what may join.
type CreateJoinTokenInput struct{ Role jointoken.Role }

// AgentPayload answers the mutations of an agent.
type AgentPayload struct{ Agent *ent.Agent }

// JoinTokenPayload carries a token that cannot be read again.
type JoinTokenPayload struct {
	Token     string
	ExpiresAt time.Time
	Command   string
}

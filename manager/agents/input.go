package agents

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/jointoken"
)

// UpdateAgentInput cordons, opens or moves an agent.
type UpdateAgentInput struct {
	ID            uuid.UUID
	Schedulable   *bool
	CordonReason  *string
	ResourceGroup *uuid.UUID
	Force         *bool // move it although sessions run there
}

// DrainAgentInput says until when sessions may stay, by one of Deadline and
// After, which is in seconds, and what becomes of them then.
type DrainAgentInput struct {
	ID       uuid.UUID
	Deadline *time.Time
	After    *int
	Action   agent.DrainAction
	Reason   *string
}

// UndrainAgentInput names the agent to open again.
type UndrainAgentInput struct{ ID uuid.UUID }

// RemoveAgentInput names the agent that is gone for good.
type RemoveAgentInput struct {
	ID    uuid.UUID
	Expel *bool
}

// RestartPluginInput names a plugin of an agent.
type RestartPluginInput struct {
	ID     uuid.UUID
	Plugin string
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

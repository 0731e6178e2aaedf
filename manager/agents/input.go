package agents

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/jointoken"
)

// UpdateAgentInput cordons, uncordons or moves an agent.
type UpdateAgentInput struct {
	ID            uuid.UUID
	Schedulable   *bool
	CordonReason  *string
	ResourceGroup *uuid.UUID
	Force         *bool // move it although it has sessions
}

// DrainAgentInput is the deadline of a drain, as Deadline or as After in seconds, and the
// action on sessions that run at the deadline.
type DrainAgentInput struct {
	ID       uuid.UUID
	Deadline *time.Time
	After    *int
	Action   agent.DrainAction
	Reason   *string
}

// UndrainAgentInput names the agent whose drain ends.
type UndrainAgentInput struct{ ID uuid.UUID }

// DeleteAgentInput names the agent to remove.
type DeleteAgentInput struct {
	ID    uuid.UUID
	Expel *bool
}

// RestartPluginInput names a plugin of an agent.
type RestartPluginInput struct {
	ID     uuid.UUID
	Plugin string
}

// CreateJoinTokenInput is the role of the machine that can join.
type CreateJoinTokenInput struct{ Role jointoken.Role }

// AgentPayload is the result of mutations of an agent.
type AgentPayload struct{ Agent *ent.Agent }

// JoinTokenPayload has the token, which is shown only once.
type JoinTokenPayload struct {
	Token     string
	ExpiresAt time.Time
	Command   string
}

package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// AgentSighting records when a manager last had a tunnel to an agent.
type AgentSighting struct{ ent.Schema }

func (AgentSighting) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Other}}
}

func (AgentSighting) Fields() []ent.Field {
	return []ent.Field{
		field.String("manager").NotEmpty().Immutable(),
		field.UUID("agent_id", uuid.UUID{}).Immutable(),
		field.Time("seen_at"), // by the database's clock
	}
}

func (AgentSighting) Indexes() []ent.Index {
	return []ent.Index{index.Fields("manager", "agent_id").Unique()}
}

package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Kernel is one container of a session.
type Kernel struct{ ent.Schema }

func (Kernel) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Kernel}, created{}, owned{}}
}

func (Kernel) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("role").Values("main", "sub").Default("main").Immutable(),
		field.Int("index").Default(0).Immutable(),
		field.String("hostname").Default("main").Immutable(),
		field.Enum("status").GoType(lifecycle.Status("")).Default(string(lifecycle.Pending)),
		field.String("status_message").Default(""),
		field.Int("exit_code").Optional().Nillable(),
		field.JSON("slots", resource.Slots{}),
		field.Int64("launch_epoch").Default(0).Annotations(entgql.Skip()),
		field.String("container_id").Default("").Annotations(entgql.Skip()),
		field.JSON("last_stats", &report.Stats{}).Optional().Annotations(entgql.Skip()),
		field.Bool("forgotten").Default(false).Annotations(entgql.Skip()), // the agent has dropped its record
		field.Time("started_at").Optional().Nillable(),
		field.Time("terminated_at").Optional().Nillable(),
		field.UUID("session_id", uuid.UUID{}).Immutable(),
		field.UUID("agent_id", uuid.UUID{}).Optional().Nillable(),
	}
}

func (Kernel) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("session", Session.Type).Ref("kernels").Field("session_id").Unique().Required().Immutable().
			Annotations(entgql.Skip()),
		edge.To("agent", Agent.Type).Field("agent_id").Unique(),
		edge.To("allocations", Allocation.Type),
	}
}

func (Kernel) Indexes() []ent.Index {
	return []ent.Index{index.Fields("session_id"), index.Fields("agent_id").Annotations(entsql.IndexWhere("agent_id IS NOT NULL"))}
}

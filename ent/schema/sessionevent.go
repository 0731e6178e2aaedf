package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
)

// SessionEvent is one entry of a session's history.
type SessionEvent struct{ ent.Schema }

func (SessionEvent) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.SessionEvent}}
}

func (SessionEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Time("at").Default(now).Immutable(),
		field.String("phase").Immutable(),
		field.Enum("from_status").GoType(lifecycle.Status("")).Optional().Nillable().Immutable(),
		field.Enum("to_status").GoType(lifecycle.Status("")).Optional().Nillable().Immutable(),
		field.Enum("result").Values("success", "retry", "failure", "expired", "info").Immutable(),
		field.Int("attempt").Default(1).Immutable(),
		field.String("code").Default("").Immutable(),
		field.String("message").Default("").Immutable(),
		field.JSON("steps", []report.Step{}).Default([]report.Step{}).Immutable(),
		field.UUID("session_id", uuid.UUID{}).Immutable(),
	}
}

func (SessionEvent) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("session", Session.Type).Ref("history").Field("session_id").Unique().Required().Immutable().
			Annotations(entgql.Skip()),
	}
}

func (SessionEvent) Indexes() []ent.Index { return []ent.Index{index.Fields("session_id", "at")} }

package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/id"
)

// ChatAnswer is what a model answered to a prompt. A gateway asks the model, and writes the row until the answer ends.
type ChatAnswer struct{ ent.Schema }

func (ChatAnswer) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.ChatAnswer}, created{}} }

func (ChatAnswer) Fields() []ent.Field {
	return []ent.Field{
		field.Int("place").Immutable().Annotations(entgql.Skip()),             // number of the column
		field.UUID("previous", uuid.UUID{}).Optional().Nillable().Immutable(), // the answer before it that the model saw
		field.Enum("status").Values("waiting", "running", "done", "stopped", "failed", "interrupted").Default("waiting"),
		field.String("note").Default("").MaxLen(2000).Annotations(entgql.Skip()), // why it waits or failed
		field.Text("text").Default("").Sensitive(),
		field.Text("reasoning").Default("").Sensitive(),
		field.JSON("asked", conversation.Asked{}).Immutable().Annotations(entgql.Skip()),
		field.Bool("hidden").Default(false).Annotations(entgql.Skip()),            // the model, until the vote of a blind chat
		field.Int("answered_by").Optional().Nillable().Annotations(entgql.Skip()), // number of the revision
		field.UUID("session_id", uuid.UUID{}).Optional().Nillable().Annotations(entgql.Skip()),
		field.JSON("measured", &conversation.Metrics{}).Optional().Annotations(entgql.Skip()),
		field.UUID("gateway", uuid.UUID{}).Optional().Nillable().Annotations(entgql.Skip()), // that runs it
		field.Bool("stopping").Default(false).Annotations(entgql.Skip()),                    // the gateway must stop it
		field.Time("ended_at").Optional().Nillable(),
		field.UUID("replay_id", uuid.UUID{}).Optional().Nillable().Immutable().Annotations(entgql.Skip()),
		field.UUID("original", uuid.UUID{}).Optional().Nillable().Immutable().Annotations(entgql.Skip()), // that a replay repeats
		field.UUID("turn_id", uuid.UUID{}).Immutable().Annotations(entgql.Skip()),
		field.UUID("chat_id", uuid.UUID{}).Immutable().Annotations(entgql.Skip()),
		field.UUID("owner_id", uuid.UUID{}).Immutable().Annotations(entgql.Skip()),
	}
}

func (ChatAnswer) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("asked_in", ChatTurn.Type).Ref("results").Field("turn_id").Unique().Required().Immutable().Annotations(entgql.Skip()),
		edge.From("repetition", ChatReplay.Type).Ref("results").Field("replay_id").Unique().Immutable().Annotations(entgql.Skip()),
	}
}

func (ChatAnswer) Indexes() []ent.Index {
	open := entsql.IndexWhere("ended_at IS NULL")
	return []ent.Index{
		index.Fields("turn_id"), index.Fields("chat_id"), index.Fields("replay_id"),
		index.Fields("created_at").Annotations(open), index.Fields("owner_id").Annotations(open),
	}
}

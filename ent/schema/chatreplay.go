package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/id"
)

// ChatReplay is the answers of a column of a chat, repeated with another model or revision.
type ChatReplay struct{ ent.Schema }

func (ChatReplay) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}, created{}} }

func (ChatReplay) Fields() []ent.Field {
	return []ent.Field{
		field.JSON("model", conversation.Model{}).Immutable(),
		field.Int("place").Immutable(), // number of the column
		field.UUID("chat_id", uuid.UUID{}).Immutable(),
	}
}

func (ChatReplay) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("chat", Chat.Type).Ref("repetitions").Field("chat_id").Unique().Required().Immutable(),
		edge.To("results", ChatAnswer.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (ChatReplay) Indexes() []ent.Index { return []ent.Index{index.Fields("chat_id", "created_at")} }

func (ChatReplay) Annotations() []schema.Annotation { return []schema.Annotation{entgql.Skip()} }

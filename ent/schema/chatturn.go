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

// ChatTurn is a prompt of a chat. It never changes.
type ChatTurn struct{ ent.Schema }

func (ChatTurn) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.ChatTurn}, created{}} }

func (ChatTurn) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("previous", uuid.UUID{}).Optional().Nillable().Immutable(), // NULL: it begins a conversation
		field.Text("prompt").Immutable().Sensitive(),
		field.JSON("files", []conversation.Attachment{}).Default([]conversation.Attachment{}).Immutable().Annotations(entgql.Skip()),
		field.UUID("chat_id", uuid.UUID{}).Immutable().Annotations(entgql.Skip()),
	}
}

func (ChatTurn) Edges() []ent.Edge {
	cascade := entsql.OnDelete(entsql.Cascade)
	return []ent.Edge{
		edge.From("chat", Chat.Type).Ref("turns").Field("chat_id").Unique().Required().Immutable().Annotations(entgql.Skip()),
		edge.To("results", ChatAnswer.Type).Annotations(cascade, entgql.Skip()),
		edge.To("ballots", ChatVote.Type).Annotations(cascade, entgql.Skip()),
		edge.To("content", ChatContent.Type).Unique().Annotations(cascade, entgql.Skip()),
	}
}

func (ChatTurn) Indexes() []ent.Index { return []ent.Index{index.Fields("chat_id", "created_at")} }

func (ChatTurn) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.MultiOrder()}
}

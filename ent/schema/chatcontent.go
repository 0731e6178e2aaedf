package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// ChatContent is the content of the attachments of a prompt, one after the other. It has a row of its own, so that lists of
// prompts do not read it.
type ChatContent struct{ ent.Schema }

func (ChatContent) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}} }

func (ChatContent) Fields() []ent.Field {
	return []ent.Field{
		field.Bytes("data").Immutable().Sensitive(),
		field.UUID("turn_id", uuid.UUID{}).Immutable(),
		field.UUID("chat_id", uuid.UUID{}).Immutable(),
	}
}

func (ChatContent) Edges() []ent.Edge {
	return []ent.Edge{edge.From("turn", ChatTurn.Type).Ref("content").Field("turn_id").Unique().Required().Immutable()}
}

func (ChatContent) Annotations() []schema.Annotation { return []schema.Annotation{entgql.Skip()} }

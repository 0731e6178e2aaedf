package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// ChatEndpoint is an address outside the cluster whose models chats can use.
type ChatEndpoint struct{ ent.Schema }

func (ChatEndpoint) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ChatEndpoint}, created{}}
}

func (ChatEndpoint) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(256).Annotations(entgql.OrderField("NAME")), // bytes of 64 characters
		field.String("address").NotEmpty().Annotations(entgql.Skip()),
		field.Strings("models").Default([]string{}),
		field.Bool("enabled").Default(true),
		field.JSON("audience", []uuid.UUID{}).Default([]uuid.UUID{}).Annotations(entgql.Skip()), // domains; empty: all
		field.Bytes("key_sealed").Optional().Sensitive().Annotations(entgql.Skip()),
	}
}

func (ChatEndpoint) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

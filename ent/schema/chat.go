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

// Chat is a conversation of a user with one or several models.
type Chat struct{ ent.Schema }

func (Chat) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Chat}, created{}} }

func (Chat) Fields() []ent.Field {
	return []ent.Field{
		field.String("title").Default("").MaxLen(800).Annotations(entgql.OrderField("TITLE")), // bytes of 200 characters
		field.JSON("asks", []conversation.Column{}).Annotations(entgql.Skip()),
		field.Int("next_number").Annotations(entgql.Skip()), // of the next column
		field.Bool("blind").Default(false).Immutable(),
		field.Bool("voted").Default(false).Annotations(entgql.Skip()), // the names of a blind chat are shown
		field.Bool("shared").Default(false),
		field.Time("updated_at").Default(now).Annotations(entgql.OrderField("UPDATED_AT")),
		field.UUID("domain_id", uuid.UUID{}).Immutable().Annotations(entgql.Skip()),
		field.UUID("owner_id", uuid.UUID{}).Immutable().Annotations(entgql.Skip()),
	}
}

func (Chat) Edges() []ent.Edge {
	cascade := entsql.OnDelete(entsql.Cascade)
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Required().Immutable().Annotations(cascade, entgql.Skip()),
		edge.To("owner", User.Type).Field("owner_id").Unique().Required().Immutable().Annotations(cascade, entgql.Skip()),
		edge.To("turns", ChatTurn.Type).Annotations(cascade, entgql.RelayConnection()),
		edge.To("repetitions", ChatReplay.Type).Annotations(cascade, entgql.Skip()),
	}
}

func (Chat) Indexes() []ent.Index {
	return []ent.Index{index.Fields("owner_id", "updated_at"), index.Fields("owner_id", "created_at"), index.Fields("domain_id")}
}

func (Chat) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

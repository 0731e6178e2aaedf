package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// Domain is the top of ownership and limits.
type Domain struct{ ent.Schema }

func (Domain) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Domain}, created{}}
}

func (Domain) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("description").Default(""),
		field.Bool("active").Default(true),
	}
}

func (Domain) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("projects", Project.Type).Annotations(entgql.RelayConnection()),
		edge.To("users", User.Type).Annotations(entgql.RelayConnection()),
		edge.To("policy", ResourcePolicy.Type).Unique(),
	}
}

func (Domain) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

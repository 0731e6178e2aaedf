package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// Domain is the top unit of ownership and limits.
type Domain struct{ ent.Schema }

func (Domain) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Domain}, created{}}
}

func (Domain) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("description").Default(""),
		field.Bool("active").Default(true),
		field.Bool("registries_restricted").Default(false), // only the registries of the edge can be used
		field.Bool("totp_required").Default(false),
		field.Int("password_min_length").Default(10),  // characters
		field.Int("password_max_age_days").Default(0), // 0: passwords do not expire
		field.Enum("sign_up").Values("off", "invitation", "approval").Default("off"),
	}
}

func (Domain) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("projects", Project.Type).Annotations(entgql.RelayConnection()),
		edge.To("users", User.Type).Annotations(entgql.RelayConnection()),
		edge.To("policies", PolicyAttachment.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("registries", Registry.Type),
	}
}

func (Domain) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

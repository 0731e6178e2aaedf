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

	"github.com/berthhq/berth/internal/id"
)

// Project is the unit of work; users are its members.
type Project struct{ ent.Schema }

func (Project) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Project}, created{}}
}

func (Project) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("description").Default(""),
		field.Bool("active").Default(true),
		field.Enum("type").Values("general", "model_store").Default("general"),
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
	}
}

func (Project) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("registries", Registry.Type).Ref("projects").Annotations(entgql.Skip()),
		edge.From("domain", Domain.Type).Ref("projects").Field("domain_id").Unique().Required().Immutable(),
		edge.To("memberships", Membership.Type).Annotations(entgql.RelayConnection()),
		edge.To("policies", PolicyAttachment.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (Project) Indexes() []ent.Index {
	return []ent.Index{index.Fields("domain_id", "name").Unique()}
}

func (Project) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

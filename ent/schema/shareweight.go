package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// ShareWeight is the fair-share weight of one domain, project or user, relative to others of
// the same level; the default is 1. It applies everywhere or in one resource group, and a
// user's weight everywhere or in one project.
type ShareWeight struct{ ent.Schema }

func (ShareWeight) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ShareWeight}, created{}}
}

func (ShareWeight) Fields() []ent.Field {
	return []ent.Field{
		field.Float("weight").Positive(),
		field.UUID("resource_group_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("within_project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (ShareWeight) Edges() []ent.Edge {
	cascade := entsql.OnDelete(entsql.Cascade)
	return []ent.Edge{
		edge.From("resource_group", ResourceGroup.Type).Ref("shares").Field("resource_group_id").Unique().Immutable(),
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Immutable().Annotations(cascade),
		edge.To("project", Project.Type).Field("project_id").Unique().Immutable().Annotations(cascade),
		edge.To("user", User.Type).Field("user_id").Unique().Immutable().Annotations(cascade),
		edge.To("within_project", Project.Type).Field("within_project_id").Unique().Immutable().Annotations(cascade),
	}
}

func (ShareWeight) Indexes() []ent.Index {
	return []ent.Index{index.Fields("resource_group_id"), index.Fields("domain_id"), index.Fields("project_id"), index.Fields("user_id")}
}

func (ShareWeight) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Check("num_nonnulls(domain_id, project_id, user_id) = 1")}
}

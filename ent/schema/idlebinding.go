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

// IdleBinding applies a checker to the sessions of one domain, project or resource group, or
// to all sessions if none is set.
type IdleBinding struct{ ent.Schema }

func (IdleBinding) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.IdleBinding}, created{}}
}

func (IdleBinding) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("checker_id", uuid.UUID{}).Immutable(),
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("resource_group_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (IdleBinding) Edges() []ent.Edge {
	cascade := entsql.OnDelete(entsql.Cascade)
	return []ent.Edge{
		edge.From("checker", IdleChecker.Type).Ref("bindings").Field("checker_id").Unique().Required().Immutable(),
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Immutable().Annotations(cascade),
		edge.To("project", Project.Type).Field("project_id").Unique().Immutable().Annotations(cascade),
		edge.From("resource_group", ResourceGroup.Type).Ref("idle_bindings").Field("resource_group_id").Unique().Immutable(),
	}
}

func (IdleBinding) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("checker_id", "domain_id").Unique(), index.Fields("checker_id", "project_id").Unique(),
		index.Fields("checker_id", "resource_group_id").Unique(),
		index.Fields("checker_id").Unique().StorageKey("idlebinding_everywhere").
			Annotations(entsql.IndexWhere("num_nonnulls(domain_id, project_id, resource_group_id) = 0")),
	}
}

func (IdleBinding) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Check("num_nonnulls(domain_id, project_id, resource_group_id) <= 1")}
}

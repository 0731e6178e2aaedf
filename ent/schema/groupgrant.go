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

// GroupGrant gives one domain, project, user or keypair access to a resource group.
type GroupGrant struct{ ent.Schema }

func (GroupGrant) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.GroupGrant}, created{}} }

func (GroupGrant) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("resource_group_id", uuid.UUID{}).Immutable(),
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("keypair_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (GroupGrant) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource_group", ResourceGroup.Type).Ref("grants").Field("resource_group_id").Unique().Required().Immutable(),
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("project", Project.Type).Field("project_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("user", User.Type).Field("user_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("keypair", Keypair.Type).Field("keypair_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (GroupGrant) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("resource_group_id", "domain_id").Unique(), index.Fields("resource_group_id", "project_id").Unique(),
		index.Fields("resource_group_id", "user_id").Unique(), index.Fields("resource_group_id", "keypair_id").Unique(),
		index.Fields("domain_id"), index.Fields("project_id"), index.Fields("user_id"), index.Fields("keypair_id"),
	}
}

func (GroupGrant) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Check("num_nonnulls(domain_id, project_id, user_id, keypair_id) = 1")}
}

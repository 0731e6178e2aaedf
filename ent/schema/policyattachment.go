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

// PolicyAttachment attaches a policy to one domain, project, user or keypair. It can be
// restricted to one resource group and, for a user, to one project.
type PolicyAttachment struct{ ent.Schema }

func (PolicyAttachment) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.PolicyAttachment}, created{}}
}

func (PolicyAttachment) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("keypair_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("within_project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("resource_group_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("policy_id", uuid.UUID{}),
	}
}

func (PolicyAttachment) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("policy", ResourcePolicy.Type).Ref("attachments").Field("policy_id").Unique().Required(),
		edge.From("domain", Domain.Type).Ref("policies").Field("domain_id").Unique().Immutable(),
		edge.From("project", Project.Type).Ref("policies").Field("project_id").Unique().Immutable(),
		edge.From("user", User.Type).Ref("policies").Field("user_id").Unique().Immutable(),
		edge.From("keypair", Keypair.Type).Ref("policies").Field("keypair_id").Unique().Immutable(),
		edge.To("within_project", Project.Type).Field("within_project_id").Unique().Immutable().
			Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("resource_group", ResourceGroup.Type).Field("resource_group_id").Unique().Immutable().
			Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (PolicyAttachment) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("domain_id"), index.Fields("project_id"), index.Fields("user_id"), index.Fields("keypair_id"),
		index.Fields("policy_id"),
	}
}

func (PolicyAttachment) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Check("num_nonnulls(domain_id, project_id, user_id, keypair_id) = 1")}
}

package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
)

// VolumeGrant allows operations on the folders of a volume, for everyone or for one domain,
// project or user.
type VolumeGrant struct{ ent.Schema }

func (VolumeGrant) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.VolumeGrant}, created{}}
}

func (VolumeGrant) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("volume_id", uuid.UUID{}).Immutable(),
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.JSON("permissions", []access.VolumePermission{}),
	}
}

func (VolumeGrant) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("volume", Volume.Type).Ref("grants").Field("volume_id").Unique().Required().Immutable(),
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("project", Project.Type).Field("project_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("user", User.Type).Field("user_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (VolumeGrant) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("volume_id", "domain_id").Unique(), index.Fields("volume_id", "project_id").Unique(),
		index.Fields("volume_id", "user_id").Unique(),
		index.Fields("domain_id"), index.Fields("project_id"), index.Fields("user_id"),
	}
}

func (VolumeGrant) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Check("num_nonnulls(domain_id, project_id, user_id) <= 1")}
}

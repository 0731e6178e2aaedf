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
	"github.com/berthhq/berth/internal/resource"
)

// ResourcePreset is a named request of slots, for one resource group or for all.
type ResourcePreset struct{ ent.Schema }

func (ResourcePreset) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ResourcePreset}, created{}}
}

func (ResourcePreset) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("description").Default(""),
		field.JSON("slots", resource.Slots{}),
		field.Int64("shm_bytes").Default(0),
		field.UUID("resource_group_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (ResourcePreset) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource_group", ResourceGroup.Type).Ref("presets").Field("resource_group_id").Unique().Immutable(),
	}
}

func (ResourcePreset) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("resource_group_id", "name").Unique(),
		index.Fields("name").StorageKey("resourcepreset_global").Unique().Annotations(entsql.IndexWhere("resource_group_id IS NULL")),
	}
}

func (ResourcePreset) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

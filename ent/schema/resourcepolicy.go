package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/resource"
)

// ResourcePolicy is a set of limits, attached to domains, projects and users.
type ResourcePolicy struct{ ent.Schema }

func (ResourcePolicy) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ResourcePolicy}, created{}}
}

func (ResourcePolicy) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.JSON("total_slots", resource.Slots{}).Default(resource.Slots{}),
		field.Int("max_sessions").Optional().Nillable(),
		field.Int("max_pending_sessions").Optional().Nillable(),
		field.Int("max_vfolders").Optional().Nillable(),
		field.Int64("max_scope_bytes").Optional().Nillable(),
	}
}

func (ResourcePolicy) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

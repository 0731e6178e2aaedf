package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
)

// Role is a named set of permissions that is granted on scopes.
type Role struct{ ent.Schema }

func (Role) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Role}, created{}} }

func (Role) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("description").Default(""),
		field.JSON("permissions", access.Permissions{}).Default(access.Permissions{}),
	}
}

func (Role) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("grants", RoleGrant.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (Role) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// RoleGrant gives a user a role on a scope: the whole system, a domain, a project or one
// object.
type RoleGrant struct{ ent.Schema }

func (RoleGrant) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.RoleGrant}, created{}} }

func (RoleGrant) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("scope").Values("system", "domain", "project", "object").Immutable(),
		field.UUID("scope_id", uuid.UUID{}).Immutable(), // all zero for the system
		field.UUID("role_id", uuid.UUID{}).Immutable(),
		field.UUID("user_id", uuid.UUID{}).Immutable(),
	}
}

func (RoleGrant) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("role", Role.Type).Ref("grants").Field("role_id").Unique().Required().Immutable(),
		edge.From("user", User.Type).Ref("role_grants").Field("user_id").Unique().Required().Immutable(),
	}
}

func (RoleGrant) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id", "role_id", "scope", "scope_id").Unique(), index.Fields("role_id")}
}

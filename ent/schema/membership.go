package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// Membership makes a user a member of a project.
type Membership struct{ ent.Schema }

func (Membership) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Membership}, created{}}
}

func (Membership) Fields() []ent.Field {
	return []ent.Field{
		field.Bool("admin").Default(false),
		field.UUID("user_id", uuid.UUID{}).Immutable(),
		field.UUID("project_id", uuid.UUID{}).Immutable(),
	}
}

func (Membership) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("user", User.Type).Ref("memberships").Field("user_id").Unique().Required().Immutable(),
		edge.From("project", Project.Type).Ref("memberships").Field("project_id").Unique().Required().Immutable(),
	}
}

func (Membership) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id", "project_id").Unique(), index.Fields("project_id")}
}

func (Membership) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

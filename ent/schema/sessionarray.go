package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/berthhq/berth/internal/id"
)

// SessionArray is a number of batch sessions with the same request and an index each.
type SessionArray struct{ ent.Schema }

func (SessionArray) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.SessionArray}, created{}, owned{}}
}

func (SessionArray) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Immutable().Annotations(entgql.OrderField("NAME")),
		field.String("indexes").Immutable(), // such as 1-10:2,20
		field.Int("size").Immutable(),       // number of indexes
		field.Int("max_running").Optional().Nillable().Immutable(),
	}
}

func (SessionArray) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Required().Immutable(),
		edge.To("project", Project.Type).Field("project_id").Unique().Required().Immutable(),
		edge.To("owner", User.Type).Field("owner_id").Unique().Required().Immutable(),
		edge.To("sessions", Session.Type).Annotations(entgql.RelayConnection(), entsql.OnDelete(entsql.SetNull)),
		edge.To("dependents", SessionDependency.Type).Annotations(entsql.OnDelete(entsql.SetNull)),
	}
}

func (SessionArray) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("owner_id", "created_at"), index.Fields("project_id"), index.Fields("domain_id"),
		index.Fields("created_at", "id").Annotations(entsql.DescColumns("created_at")),
	}
}

func (SessionArray) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

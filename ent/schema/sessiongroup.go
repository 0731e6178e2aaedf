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

// SessionGroup controls the placement of its sessions with regard to each other: spread over
// agents, or packed on few.
type SessionGroup struct{ ent.Schema }

func (SessionGroup) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.SessionGroup}, created{}, owned{}}
}

func (SessionGroup) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.Enum("placement").Values("spread", "pack").Immutable(),
		field.Bool("strict").Default(false).Immutable(), // wait rather than violate the placement
	}
}

func (SessionGroup) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Required().Immutable(),
		edge.To("project", Project.Type).Field("project_id").Unique().Required().Immutable(),
		edge.To("owner", User.Type).Field("owner_id").Unique().Required().Immutable(),
		edge.To("sessions", Session.Type).Annotations(entgql.RelayConnection(), entsql.OnDelete(entsql.SetNull)),
	}
}

func (SessionGroup) Indexes() []ent.Index {
	return []ent.Index{index.Fields("owner_id", "name").Unique(), index.Fields("project_id"), index.Fields("domain_id")}
}

func (SessionGroup) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

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
)

// SessionNetwork is the overlay network between the kernels of a session on several agents,
// from its placement on. Its numbers can be reused after freed_at is set. Every attempt of a
// session has its own.
type SessionNetwork struct{ ent.Schema }

func (SessionNetwork) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Other}, created{}}
}

func (SessionNetwork) Fields() []ent.Field {
	return []ent.Field{
		field.Int("vni").Immutable(),
		field.String("subnet").Immutable(),
		field.Int("mtu").Immutable(), // largest packet that all of its agents can carry
		field.Time("freed_at").Optional().Nillable(),
		field.UUID("session_id", uuid.UUID{}).Immutable(),
	}
}

func (SessionNetwork) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("session", Session.Type).Ref("networks").Field("session_id").Unique().Required().Immutable(),
	}
}

func (SessionNetwork) Indexes() []ent.Index {
	live := func() *entsql.IndexAnnotation { return entsql.IndexWhere("freed_at IS NULL") }
	return []ent.Index{
		index.Fields("vni").Unique().Annotations(live()),
		index.Fields("subnet").Unique().Annotations(live()),
		index.Fields("session_id").Unique().Annotations(live()),
		index.Fields("session_id").StorageKey("sessionnetwork_all"),
		index.Fields("created_at"),
	}
}

func (SessionNetwork) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

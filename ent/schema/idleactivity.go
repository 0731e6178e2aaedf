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

// IdleActivity records when a session was last used over the network, through each app and otherwise. It has its own table
// because it is written far more often than the session.
type IdleActivity struct{ ent.Schema }

func (IdleActivity) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}} }

func (IdleActivity) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("session_id", uuid.UUID{}).Immutable(),
		field.String("app").Default("").MaxLen(24).Immutable(), // the app that was used; "": not through an app
		field.Time("at"),
	}
}

func (IdleActivity) Edges() []ent.Edge {
	return []ent.Edge{edge.To("session", Session.Type).Field("session_id").Unique().Required().Immutable().
		Annotations(entsql.OnDelete(entsql.Cascade))}
}

func (IdleActivity) Indexes() []ent.Index {
	return []ent.Index{index.Fields("session_id", "app").Unique()}
}

func (IdleActivity) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

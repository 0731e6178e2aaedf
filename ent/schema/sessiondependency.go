package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// SessionDependency makes a session start only after another one has succeeded, or all members
// of an array. It outlives the other session or array, whose name it stores.
type SessionDependency struct{ ent.Schema }

func (SessionDependency) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.SessionDependency}}
}

func (SessionDependency) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Immutable(),       // name of the required session or array
		field.Bool("satisfied").Default(false), // the required session or array has succeeded
		field.UUID("session_id", uuid.UUID{}).Immutable().Annotations(entgql.Skip()),
		field.UUID("needed_id", uuid.UUID{}).Optional().Nillable().Immutable().Annotations(entgql.Skip()),
		field.UUID("needed_array_id", uuid.UUID{}).Optional().Nillable().Immutable().Annotations(entgql.Skip()),
	}
}

func (SessionDependency) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("session", Session.Type).Ref("depends_on").Field("session_id").Unique().Required().Immutable(),
		edge.From("needed", Session.Type).Ref("dependents").Field("needed_id").Unique().Immutable(),
		edge.From("needed_array", SessionArray.Type).Ref("dependents").Field("needed_array_id").Unique().Immutable(),
	}
}

func (SessionDependency) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("session_id", "needed_id").Unique(),
		index.Fields("needed_id").Annotations(entsql.IndexWhere("NOT satisfied")).StorageKey("sessiondependency_open"),
		index.Fields("needed_array_id").Annotations(entsql.IndexWhere("(needed_array_id IS NOT NULL) AND (NOT satisfied)")),
	}
}

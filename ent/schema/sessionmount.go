package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// SessionMount is a folder as a session mounts it.
type SessionMount struct{ ent.Schema }

func (SessionMount) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.SessionMount}}
}

func (SessionMount) Fields() []ent.Field {
	return []ent.Field{
		field.String("target").Immutable(),
		field.String("subpath").Default("").Immutable(),
		field.Bool("read_only").Default(false),
		field.Bool("read_only_wanted").Default(false).Immutable().Annotations(entgql.Skip()), // not for want of rights
		field.Bool("settled").Default(true).Annotations(entgql.Skip()),                       // the agents have it as it is here
		field.Time("revoked_at").Optional().Nillable(),                                       // when the owner lost the folder and the mount was taken away
		field.UUID("session_id", uuid.UUID{}).Immutable(),
		field.UUID("vfolder_id", uuid.UUID{}).Immutable(),
	}
}

func (SessionMount) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("session", Session.Type).Ref("mounts").Field("session_id").Unique().Required().Immutable().
			Annotations(entgql.Skip()),
		edge.From("vfolder", Vfolder.Type).Ref("mounts").Field("vfolder_id").Unique().Required().Immutable(),
	}
}

func (SessionMount) Indexes() []ent.Index {
	return []ent.Index{index.Fields("session_id", "target").Unique(), index.Fields("vfolder_id")}
}

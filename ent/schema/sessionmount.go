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

// SessionMount is a folder that is mounted into a session.
type SessionMount struct{ ent.Schema }

func (SessionMount) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.SessionMount}}
}

func (SessionMount) Fields() []ent.Field {
	return []ent.Field{
		field.String("target").Immutable(),
		field.String("subpath").Default("").Immutable(),
		field.Bool("read_only").Default(false),
		field.Bool("read_only_wanted").Default(false).Immutable().Annotations(entgql.Skip()), // requested by the user, not caused by missing permission
		field.Bool("settled").Default(true).Annotations(entgql.Skip()),                       // the agents have applied this state
		field.Time("revoked_at").Optional().Nillable(),                                       // when the mount was removed because the owner lost access to the folder
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

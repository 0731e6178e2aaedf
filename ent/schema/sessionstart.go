package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// SessionStart is how long one start of a session took, from its place in the queue until it ran. The leader derives it from
// the history of the session. Its id is that of the entry of the history about the start.
type SessionStart struct{ ent.Schema }

func (SessionStart) Mixin() []ent.Mixin { return []ent.Mixin{owned{}} }

func (SessionStart) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", uuid.UUID{}).Immutable(),
		field.UUID("session_id", uuid.UUID{}).Immutable(),
		field.UUID("resource_group_id", uuid.UUID{}).Immutable(),
		field.UUID("image_id", uuid.UUID{}).Immutable(),
		field.UUID("agent_id", uuid.UUID{}).Optional().Nillable().Immutable(), // of the main kernel
		field.String("session_type").Immutable(),
		field.String("reason").Immutable(), // what it waited for most of the time
		field.String("path").Immutable(),   // how the image came to the machine
		field.Time("started_at").Immutable(),
		// In milliseconds; the first is the sum of the others.
		field.Int64("wait_ms").Immutable(),
		field.Int64("queue_ms").Immutable(),
		field.Int64("pull_ms").Immutable(),
		field.Int64("create_ms").Immutable(),
	}
}

func (SessionStart) Indexes() []ent.Index {
	return []ent.Index{index.Fields("started_at"), index.Fields("session_id"), index.Fields("owner_id", "started_at")}
}

func (SessionStart) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

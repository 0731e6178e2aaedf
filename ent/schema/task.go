package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// Task is work that continues after the request that started it, also after a crash of its
// manager.
type Task struct{ ent.Schema }

func (Task) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Task}, created{}} }

func (Task) Fields() []ent.Field {
	return []ent.Field{
		field.String("kind").NotEmpty().Immutable(),
		field.String("title").Default("").Immutable(),
		field.Enum("status").Values("waiting", "scheduled", "running", "done", "failed", "cancelled").Default("waiting"),
		field.Bytes("input").Immutable().Annotations(entgql.Skip()), // JSON; the format depends on the kind
		field.Bytes("state").Optional().Annotations(entgql.Skip()),  // where to continue
		field.Int64("done").Default(0),
		field.Int64("total").Default(0),
		field.String("message").Default(""),
		field.Int("attempt").Default(0),
		field.Time("retry_at").Optional().Nillable(), // when a waiting or scheduled task runs
		field.Time("started_at").Optional().Nillable(),
		field.Time("ended_at").Optional().Nillable(),
		field.UUID("subject_id", uuid.UUID{}).Optional().Nillable().Immutable(), // the object that it works on
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("creator_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (Task) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("creator_id"), index.Fields("domain_id"), index.Fields("subject_id"),
		index.Fields("created_at").Annotations(entsql.IndexWhere("ended_at IS NULL")),
	}
}

func (Task) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

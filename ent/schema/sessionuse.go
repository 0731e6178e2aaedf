package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// SessionUse is what a session used of one thing that is measured, over its whole run. The leader computes it from the history
// of measurements: now and then while the session runs, and for the last time after its end.
type SessionUse struct{ ent.Schema }

func (SessionUse) Mixin() []ent.Mixin { return []ent.Mixin{owned{}} }

func (SessionUse) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.UUID("session_id", uuid.UUID{}).Immutable(),
		field.String("metric").Immutable(), // such as cpu_util, mem_used or cuda_util
		field.String("slot").Default(""),   // that the metric is about, if the session has one
		field.String("unit").Default(""),
		field.Float("asked").Default(0), // capacity in the unit of the metric; 0: unknown
		// Unknown without measurements.
		field.Float("mean").Optional().Nillable(),
		field.Float("p95").Optional().Nillable(),
		field.Float("peak").Optional().Nillable(),
		field.Enum("quality").Values("measured", "partial", "unknown"),
		field.Int64("seconds").Default(0),              // with measurements
		field.Int64("suggested").Optional().Nillable(), // amount of the slot
		field.Bool("final").Default(false),             // the session has ended
		field.Time("updated_at").Default(now),          // when it was computed
	}
}

func (SessionUse) Indexes() []ent.Index {
	return []ent.Index{index.Fields("session_id", "metric").Unique(), index.Fields("owner_id")}
}

func (SessionUse) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

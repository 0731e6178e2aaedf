package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// CapacitySpan is a time in which a device had one capacity of a slot and was in service or out of service. Rows have no edges:
// the past of a machine outlives it.
type CapacitySpan struct{ ent.Schema }

func (CapacitySpan) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.UUID("agent_id", uuid.UUID{}).Immutable(),
		field.UUID("device_id", uuid.UUID{}).Immutable(),
		field.UUID("resource_group_id", uuid.UUID{}).Immutable(),
		field.String("slot").Immutable(),
		field.Int64("amount").Immutable(),
		field.Bool("out").Immutable(), // out of service: lost, cordoned, drained or unhealthy
		field.Time("began_at").Immutable(),
		field.Time("ended_at").Optional().Nillable(),
	}
}

func (CapacitySpan) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("device_id", "slot").Unique().Annotations(entsql.IndexWhere("ended_at IS NULL")),
		index.Fields("ended_at"),
	}
}

func (CapacitySpan) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

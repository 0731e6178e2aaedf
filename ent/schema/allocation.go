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

// Allocation is an amount of a device that is assigned to a kernel. While freed_at is null, it
// is the truth about occupancy; afterwards it is the record of usage.
type Allocation struct{ ent.Schema }

func (Allocation) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Allocation}, created{}, owned{}}
}

func (Allocation) Fields() []ent.Field {
	return []ent.Field{
		field.String("slot").Immutable(),
		field.Int64("amount").Immutable().Positive().Annotations(entgql.Skip()),
		field.Time("freed_at").Optional().Nillable(),
		field.UUID("session_id", uuid.UUID{}).Immutable(),
		field.UUID("kernel_id", uuid.UUID{}).Immutable(),
		field.UUID("agent_id", uuid.UUID{}).Immutable(),
		field.UUID("device_id", uuid.UUID{}).Immutable(),
	}
}

func (Allocation) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("kernel", Kernel.Type).Ref("allocations").Field("kernel_id").Unique().Required().Immutable().
			Annotations(entgql.Skip()),
		edge.To("device", Device.Type).Field("device_id").Unique().Required().Immutable(),
	}
}

func (Allocation) Indexes() []ent.Index {
	live := func() *entsql.IndexAnnotation { return entsql.IndexWhere("freed_at IS NULL") }
	return []ent.Index{
		index.Fields("kernel_id"),
		index.Fields("session_id"),
		index.Fields("agent_id").Annotations(live()),
		index.Fields("device_id").Annotations(live()),
		index.Fields("owner_id"),
		index.Fields("project_id"),
		index.Fields("domain_id"),
	}
}

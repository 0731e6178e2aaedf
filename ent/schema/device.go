package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Device is one schedulable unit on an agent, cpu and mem included.
type Device struct{ ent.Schema }

func (Device) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Device}}
}

func (Device) Fields() []ent.Field {
	return []ent.Field{
		field.String("device_id").Immutable().Annotations(entgql.OrderField("DEVICE_ID")),
		field.String("plugin").Default(""),
		field.String("vendor").Default(""),
		field.String("model").Default("").Annotations(entgql.OrderField("MODEL")),
		field.JSON("capacity", resource.Slots{}).Default(resource.Slots{}), // as reported, replaced as a whole
		field.JSON("attributes", map[string]string{}).Default(map[string]string{}),
		field.Int("numa_node").Optional().Nillable(),
		field.String("pci_address").Default(""),
		field.Int64("memory_bytes").Default(0),
		field.Int("processing_units").Default(0),
		field.String("pcie_root").Default("").Annotations(entgql.Skip()),
		field.String("parent").Default("").Annotations(entgql.Skip()),                                           // device_id of the device that a partition is part of
		field.JSON("groups", []string{}).Default([]string{}).Annotations(entgql.Skip()),                         // devices that belong together
		field.JSON("consumes", []report.CounterUse{}).Default([]report.CounterUse{}).Annotations(entgql.Skip()), // amounts that it uses of its agent's counters
		field.Enum("health").Values("healthy", "degraded", "unhealthy", "lost", "unknown").Default("unknown"),
		field.String("health_message").Default(""),
		field.Bool("allocatable").Default(true),
		field.JSON("reject_reasons", []string{}).Default([]string{}),
		field.UUID("agent_id", uuid.UUID{}).Immutable(),
	}
}

func (Device) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("agent", Agent.Type).Ref("devices").Field("agent_id").Unique().Required().Immutable(),
	}
}

func (Device) Indexes() []ent.Index {
	return []ent.Index{index.Fields("agent_id", "device_id").Unique()}
}

func (Device) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

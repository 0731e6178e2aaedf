package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
)

// ResourceGroup is a set of agents with its own scheduler options.
type ResourceGroup struct{ ent.Schema }

func (ResourceGroup) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ResourceGroup}, created{}}
}

func (ResourceGroup) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("description").Default(""),
		field.Bool("active").Default(true),
		field.Bool("public").Default(true),
		field.Strings("session_types").Default(lifecycle.SessionTypes), // allowed session types
		field.Strings("allowed_networks").Default([]string{}),          // in addition to those of the agents; see internal/netlist
		field.Enum("strategy").Values("pack", "concentrated", "dispersed", "roundrobin").Default("pack"),
		field.Enum("order").Values("fifo", "lifo", "drf", "fair_share").Default("fifo").StorageKey("queue_order"),
		field.Int("hold_after").Default(600),                                                // seconds; negative: never
		field.Enum("split").Values("fill", "evenly", "none").Default("fill"),                // how an amount is taken from several devices
		field.Enum("topology").Values("prefer", "node", "root", "linked").Default("prefer"), // required nearness of a kernel's devices
		field.Enum("preemption").Values("off", "terminate", "reschedule").Default("off"),
		field.Enum("preemption_scope").Values("user", "project", "domain", "group").Default("user"),
		field.Int("preemption_after").Default(300), // seconds that a session runs before it can be preempted
		field.Enum("lost_policy").Values("wait", "fail", "reschedule").Default("wait"),
		field.Int("lost_after").Default(300), // seconds from the loss of an agent to the end of its sessions
		field.Int("max_attempts").Default(3),
		field.Int("pending_timeout").Default(0),       // seconds; 0: no limit
		field.Int("half_life").Default(7 * 24 * 3600), // seconds; half-life of usage for fair share
		field.Int("lookback").Default(28 * 24 * 3600), // seconds
	}
}

func (ResourceGroup) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("agents", Agent.Type).Annotations(entgql.RelayConnection()),
		edge.To("grants", GroupGrant.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("shares", ShareWeight.Type).Annotations(entgql.Skip(), entsql.OnDelete(entsql.Cascade)),
		edge.To("idle_bindings", IdleBinding.Type).Annotations(entgql.Skip(), entsql.OnDelete(entsql.Cascade)),
		edge.To("presets", ResourcePreset.Type).Annotations(entgql.Skip(), entsql.OnDelete(entsql.Cascade)),
	}
}

func (ResourceGroup) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

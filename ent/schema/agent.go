package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/report"
)

// Agent is one worker machine.
type Agent struct{ ent.Schema }

func (Agent) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Agent}}
}

func (Agent) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.Enum("status").Values("alive", "lost", "terminated").Default("alive"),
		field.Bool("schedulable").Default(true),
		field.String("cordon_reason").Default(""),                                          // the administrator's reason
		field.Time("drain_deadline").Optional().Nillable(),                                 // set while it is drained
		field.Enum("drain_action").Values("reschedule", "terminate").Optional().Nillable(), // for sessions that still run at the deadline
		field.Time("lost_at").Optional().Nillable(),
		field.String("incarnation").Default("").Annotations(entgql.Skip()),
		field.String("version").Default(""),
		field.String("architecture").Default(""),
		field.String("address").Default(""),
		field.String("zone").Default(""), // such as a room or a data center
		field.JSON("plugins", []report.Plugin{}).Default([]report.Plugin{}),
		field.JSON("probes", []report.Probe{}).Default([]report.Probe{}),
		field.JSON("conditions", []report.Condition{}).Default([]report.Condition{}),
		field.JSON("volumes", []string{}).Default([]string{}).Annotations(entgql.Skip()),
		field.JSON("counters", report.Counters{}).Default(report.Counters{}).Annotations(entgql.Skip()),
		field.JSON("allowed_counts", report.Counts{}).Default(report.Counts{}).Annotations(entgql.Skip()),
		field.JSON("overlay", report.Overlay{}).Default(report.Overlay{}).Annotations(entgql.Skip()),
		field.JSON("links", []report.Link{}).Default([]report.Link{}).Annotations(entgql.Skip()),
		field.Time("first_seen_at").Default(now).Immutable().Annotations(entgql.OrderField("FIRST_SEEN_AT")),
		field.Time("last_seen_at").Default(now),
		field.UUID("resource_group_id", uuid.UUID{}),
	}
}

func (Agent) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource_group", ResourceGroup.Type).Ref("agents").Field("resource_group_id").Unique().Required(),
		edge.To("devices", Device.Type),
		edge.To("image_copies", ImageCopy.Type).Annotations(entsql.OnDelete(entsql.Cascade), entgql.Skip()),
		edge.From("wanted_by", Session.Type).Ref("agents").Annotations(entgql.Skip()),
	}
}

func (Agent) Indexes() []ent.Index { return []ent.Index{index.Fields("resource_group_id")} }

func (Agent) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

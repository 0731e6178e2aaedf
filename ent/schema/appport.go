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
)

// AppPort is the port of the gateways at which an app of a kernel appears to browsers. It belongs to the
// app until its session has ended and another app needs it.
type AppPort struct{ ent.Schema }

func (AppPort) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}, created{}} }

func (AppPort) Fields() []ent.Field {
	return []ent.Field{
		field.Int("port").Min(1).Max(65535).Unique().Immutable(),
		field.String("app").NotEmpty().MaxLen(24).Immutable(), // a name, or a port of the container
		field.Int("kernel").Default(0).Immutable(),            // index
		field.UUID("session_id", uuid.UUID{}).Immutable(),
	}
}

func (AppPort) Edges() []ent.Edge {
	return []ent.Edge{edge.From("session", Session.Type).Ref("app_ports").Field("session_id").Unique().Required().Immutable()}
}

func (AppPort) Indexes() []ent.Index {
	return []ent.Index{index.Fields("session_id", "app", "kernel").Unique()}
}

func (AppPort) Annotations() []schema.Annotation { return []schema.Annotation{entgql.Skip()} }

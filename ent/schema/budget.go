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
)

// Budget limits what the sessions of one user, project or domain can cost, each month or once.
type Budget struct{ ent.Schema }

func (Budget) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Budget}, created{}}
}

func (Budget) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("period").Values("month", "total").Immutable(),
		field.Time("starts_at").Immutable(),                             // what was spent before does not count
		field.Time("ends_at").Optional().Nillable().Immutable(),         // of total
		field.String("time_zone").Default("UTC").MaxLen(64).Immutable(), // in which months begin
		// Millionths of the currency; NULL: no limit.
		field.Int64("soft_micros").Optional().Nillable().NonNegative().Annotations(entgql.Skip()),
		field.Int64("hard_micros").Optional().Nillable().NonNegative().Annotations(entgql.Skip()),
		field.Enum("at_hard").Values("keep", "terminate").Default("keep"), // what happens to running sessions
		// The beginnings of the periods in which the limits were reached last, so that each is reported once.
		field.Time("soft_reached").Optional().Nillable().Annotations(entgql.Skip()),
		field.Time("hard_reached").Optional().Nillable().Annotations(entgql.Skip()),
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (Budget) Edges() []ent.Edge {
	cascade := entsql.OnDelete(entsql.Cascade)
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Immutable().Annotations(cascade),
		edge.To("project", Project.Type).Field("project_id").Unique().Immutable().Annotations(cascade),
		edge.To("user", User.Type).Field("user_id").Unique().Immutable().Annotations(cascade),
	}
}

func (Budget) Indexes() []ent.Index {
	return []ent.Index{index.Fields("domain_id"), index.Fields("project_id"), index.Fields("user_id")}
}

func (Budget) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Check("num_nonnulls(domain_id, project_id, user_id) = 1")}
}

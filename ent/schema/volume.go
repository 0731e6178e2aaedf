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

// Volume is storage that folders are created on.
type Volume struct{ ent.Schema }

func (Volume) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Volume}, created{}}
}

func (Volume) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().Immutable().Annotations(entgql.OrderField("NAME")),
		field.String("backend").Default(""),
		field.String("health").Default("unavailable"),
		field.String("health_message").Default(""),
		field.JSON("capabilities", []string{}).Default([]string{}),
		field.Int64("total_bytes").Default(0),
		field.Int64("used_bytes").Default(0),
		field.Int64("total_inodes").Optional().Nillable(),
		field.Int64("used_inodes").Optional().Nillable(),
		field.Bool("elastic").Default(false),        // grows automatically: total_bytes is not a limit
		field.String("enforcement").Default("none"), // enforcement of limits: hard, delayed, cooperative, none
		field.JSON("performance", &report.Performance{}).Optional().Annotations(entgql.Skip()),
		field.UUID("proxy_id", uuid.UUID{}),
	}
}

func (Volume) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("proxy", StorageProxy.Type).Ref("volumes").Field("proxy_id").Unique().Required().
			Annotations(entgql.Skip()),
		edge.To("grants", VolumeGrant.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (Volume) Indexes() []ent.Index { return []ent.Index{index.Fields("proxy_id")} }

func (Volume) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

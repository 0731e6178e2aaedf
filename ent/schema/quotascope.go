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

// QuotaScope is the limit that all folders of one user or project on a volume share.
type QuotaScope struct{ ent.Schema }

func (QuotaScope) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.QuotaScope}, created{}}
}

func (QuotaScope) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("kind").Values("user", "project").Immutable(),
		field.UUID("holder_id", uuid.UUID{}).Immutable(), // user or project
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
		field.Int64("limit_bytes").Optional().Nillable(),
		field.Int64("used_bytes").Optional().Nillable(),
		field.Int64("limit_inodes").Optional().Nillable(),
		field.Int64("used_inodes").Optional().Nillable(),
		field.String("enforcement").Default("none"),
		field.Time("measured_at").Optional().Nillable(),
		field.UUID("volume_id", uuid.UUID{}).Immutable(),
	}
}

func (QuotaScope) Edges() []ent.Edge {
	return []ent.Edge{edge.To("volume", Volume.Type).Field("volume_id").Unique().Required().Immutable()}
}

func (QuotaScope) Indexes() []ent.Index {
	return []ent.Index{index.Fields("volume_id", "kind", "holder_id").Unique(), index.Fields("holder_id")}
}

func (QuotaScope) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

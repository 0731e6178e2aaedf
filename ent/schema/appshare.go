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

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
)

// AppShare opens one app of a kernel to people who cannot enter its session.
type AppShare struct{ ent.Schema }

func (AppShare) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.AppShare}, created{}} }

func (AppShare) Fields() []ent.Field {
	return []ent.Field{
		field.String("app").NotEmpty().MaxLen(24).Immutable(), // a name, or a port
		field.Int("kernel").Default(0).Immutable(),            // index
		field.Enum("audience").GoType(access.AppAudience("")),
		field.JSON("networks", []string{}).Default([]string{}), // prefixes of addresses that can open it; empty: all
		field.Time("expires_at").Optional().Nillable(),
		field.UUID("session_id", uuid.UUID{}).Immutable(),
		field.UUID("creator_id", uuid.UUID{}).Optional().Nillable(),
	}
}

func (AppShare) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("session", Session.Type).Ref("app_shares").Field("session_id").Unique().Required().Immutable(),
		edge.To("creator", User.Type).Field("creator_id").Unique().Annotations(entsql.OnDelete(entsql.SetNull)),
	}
}

func (AppShare) Indexes() []ent.Index {
	return []ent.Index{index.Fields("session_id", "app", "kernel").Unique()}
}

func (AppShare) Annotations() []schema.Annotation { return []schema.Annotation{entgql.Skip()} }

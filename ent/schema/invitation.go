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

// Invitation lets one person sign up. Only the hash of its secret is stored.
type Invitation struct{ ent.Schema }

func (Invitation) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Invitation}, created{}} }

func (Invitation) Fields() []ent.Field {
	return []ent.Field{
		field.Bytes("hash").Unique().Immutable().Sensitive().Annotations(entgql.Skip()),
		field.String("email").NotEmpty().MaxLen(254).Immutable().Annotations(entgql.OrderField("EMAIL")),
		field.Time("expires_at").Immutable().Annotations(entgql.OrderField("EXPIRES_AT")),
		field.Time("used_at").Optional().Nillable(),
		field.Time("revoked_at").Optional().Nillable(),
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("creator_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (Invitation) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Required().Immutable(),
		edge.To("project", Project.Type).Field("project_id").Unique().Immutable(),
	}
}

func (Invitation) Indexes() []ent.Index { return []ent.Index{index.Fields("domain_id")} }

func (Invitation) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

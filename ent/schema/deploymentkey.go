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

// DeploymentKey is a credential for requests to models, with limits. Only its hash is stored.
type DeploymentKey struct{ ent.Schema }

func (DeploymentKey) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.DeploymentKey}, created{}}
}

func (DeploymentKey) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Immutable().Annotations(entgql.OrderField("NAME")),
		field.String("prefix").Immutable(),
		field.Bytes("hash").Unique().Immutable().Sensitive().Annotations(entgql.Skip()),
		field.Strings("apis").Default([]string{}).Immutable(), // groups of internal/modelapi; none = all
		field.Int("requests_per_minute").Default(0),           // 0 = no limit, as for the next two
		field.Int("tokens_per_minute").Default(0),
		field.Int64("token_budget").Default(0), // of all tokens that the key uses
		field.Int64("used_requests").Default(0),
		field.Int64("used_tokens").Default(0),
		field.Time("expires_at").Optional().Nillable().Immutable(),
		field.Time("last_used_at").Optional().Nillable(),
		field.Time("revoked_at").Optional().Nillable(),
		field.UUID("domain_id", uuid.UUID{}).Immutable().Annotations(entgql.Skip()),
		field.UUID("user_id", uuid.UUID{}).Immutable(),
		field.UUID("deployment_id", uuid.UUID{}).Optional().Nillable().Immutable(), // NULL: all that the user can use
	}
}

func (DeploymentKey) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("user", User.Type).Field("user_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.From("deployment", Deployment.Type).Ref("keys").Field("deployment_id").Unique().Immutable(),
	}
}

func (DeploymentKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id"), index.Fields("deployment_id")}
}

func (DeploymentKey) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

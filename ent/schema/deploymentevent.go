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

// DeploymentEvent is a decision about a deployment, or something that happened to its replicas.
type DeploymentEvent struct{ ent.Schema }

func (DeploymentEvent) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.DeploymentEvent}, created{}}
}

func (DeploymentEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("kind").Values("created", "changed", "scaled", "refused", "updating", "stepped", "promoted", "completed", "rolled_back",
			"replica_ready", "replica_failed", "ended").Immutable(),
		field.Int("revision").Optional().Nillable().Immutable(),
		field.Int("replicas_before").Optional().Nillable().Immutable(), // wanted, of scaled
		field.Int("replicas_after").Optional().Nillable().Immutable(),
		field.String("metric").Default("").Immutable(), // that decided
		field.Float("value").Optional().Nillable().Immutable(),
		field.Float("limit").Optional().Nillable().Immutable(),
		field.String("message").Default("").Immutable(),
		field.UUID("deployment_id", uuid.UUID{}).Immutable(),
	}
}

func (DeploymentEvent) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("deployment", Deployment.Type).Ref("events").Field("deployment_id").Unique().Required().Immutable(),
	}
}

func (DeploymentEvent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "created_at")}
}

func (DeploymentEvent) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.MultiOrder()}
}

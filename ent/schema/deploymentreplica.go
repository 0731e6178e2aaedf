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

// DeploymentReplica is a session that serves the model of a deployment.
type DeploymentReplica struct{ ent.Schema }

func (DeploymentReplica) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.DeploymentReplica}, created{}}
}

func (DeploymentReplica) Fields() []ent.Field {
	return []ent.Field{
		field.Int("revision").Immutable(), // number
		field.Enum("phase").Values("starting", "ready", "draining", "ending", "ended").Default("starting"),
		field.Time("phase_since").Default(now),
		field.String("message").Default(""),                        // why it is not ready, or has ended
		field.Bool("failed").Default(false),                        // it ended although it was wanted
		field.Int("misses").Default(0).Annotations(entgql.Skip()),  // checks in a row that failed
		field.Int("drained").Default(0).Annotations(entgql.Skip()), // version of the deployment from which on it gets no request
		field.UUID("deployment_id", uuid.UUID{}).Immutable(),
		field.UUID("session_id", uuid.UUID{}).Optional().Nillable(),
		field.Time("ended_at").Optional().Nillable(),
	}
}

func (DeploymentReplica) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("deployment", Deployment.Type).Ref("replicas").Field("deployment_id").Unique().Required().Immutable(),
		edge.To("session", Session.Type).Field("session_id").Unique().Annotations(entsql.OnDelete(entsql.SetNull)),
	}
}

func (DeploymentReplica) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "ended_at"), index.Fields("session_id")}
}

func (DeploymentReplica) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.MultiOrder()}
}

package schema

import (
	"encoding/json"

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

// DeploymentRevision is how the replicas of a deployment are started. It never changes.
type DeploymentRevision struct{ ent.Schema }

func (DeploymentRevision) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.DeploymentRevision}, created{}}
}

func (DeploymentRevision) Fields() []ent.Field {
	return []ent.Field{
		field.Int("number").Immutable(), // in the deployment, from 1
		field.String("variant").Immutable(),
		field.JSON("options", map[string]string{}).Default(map[string]string{}).Immutable(),
		// The request of a replica's session in the form of createSession's input. The values of its
		// environment and its script are encrypted together.
		field.JSON("request", json.RawMessage{}).Immutable().Annotations(entgql.Skip()),
		field.Bytes("secrets_sealed").Optional().Sensitive().Annotations(entgql.Skip()), // changes with the keys of the cluster
		field.JSON("engine", json.RawMessage{}).Immutable().Annotations(entgql.Skip()),  // command, port and checks
		field.String("subpath").Default("").Immutable(),                                 // of the model below its folder
		field.String("image").Immutable(),                                               // reference
		field.String("image_digest").Default("").Immutable(),
		field.String("comment").Default("").MaxLen(1000).Immutable(),
		field.UUID("deployment_id", uuid.UUID{}).Immutable(),
		field.UUID("vfolder_id", uuid.UUID{}).Optional().Nillable(), // of the model
		field.UUID("creator_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (DeploymentRevision) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("deployment", Deployment.Type).Ref("revisions").Field("deployment_id").Unique().Required().Immutable(),
		edge.To("vfolder", Vfolder.Type).Field("vfolder_id").Unique().Annotations(entsql.OnDelete(entsql.SetNull)),
		edge.To("creator", User.Type).Field("creator_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.SetNull)),
	}
}

func (DeploymentRevision) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "number").Unique(), index.Fields("vfolder_id")}
}

func (DeploymentRevision) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.MultiOrder()}
}

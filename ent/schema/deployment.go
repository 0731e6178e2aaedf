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

	"github.com/berthhq/berth/internal/id"
)

// Deployment is a model that replicas of a revision serve behind one address.
type Deployment struct{ ent.Schema }

func (Deployment) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Deployment}, created{}, owned{}}
}

func (Deployment) Fields() []ent.Field {
	return []ent.Field{
		field.Int("version").Default(1), // incremented by every change that gateways must know
		field.String("name").NotEmpty().MaxLen(63).Immutable().Annotations(entgql.OrderField("NAME")),
		field.String("description").Default("").MaxLen(1000),
		field.Enum("status").Values("starting", "serving", "updating", "degraded", "asleep", "ending", "ended").Default("starting"),
		field.String("message").Default(""), // why it is not serving
		field.Bool("shared").Default(false), // the members of the project can use it
		field.Bool("open").Default(false),   // requests need no key
		// The requests and answers are recorded for the owner, and every answer says so.
		field.Bool("recorded").Default(false),
		field.Int("wanted"),  // replicas
		field.Int("current"), // number of the revision that serves
		field.Int("target"),  // number of the revision that it changes to; the same without a change
		// The settings in the form of the service's input, and what decisions remember.
		field.JSON("strategy", json.RawMessage{}).Annotations(entgql.Skip()),
		field.JSON("scaling", json.RawMessage{}).Annotations(entgql.Skip()),
		field.JSON("progress", json.RawMessage{}).Annotations(entgql.Skip()),
		field.JSON("weights", map[int]int{}).Default(map[int]int{}).Annotations(entgql.Skip()), // percent of the requests, by revision
		field.Int("concurrency").Default(0),                                                    // requests that one replica gets at a time; 0 = no limit
		field.Int("drain_seconds").Default(60),                                                 // until the requests of a replica that ends are cut
		field.Time("last_request_at").Optional().Nillable(),
		field.Time("ended_at").Optional().Nillable(),
	}
}

func (Deployment) Edges() []ent.Edge {
	cascade := entsql.OnDelete(entsql.Cascade)
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Required().Immutable().Annotations(entgql.Skip()),
		edge.To("project", Project.Type).Field("project_id").Unique().Required().Immutable(),
		edge.To("owner", User.Type).Field("owner_id").Unique().Required().Immutable(),
		edge.To("revisions", DeploymentRevision.Type).Annotations(cascade, entgql.RelayConnection()),
		edge.To("replicas", DeploymentReplica.Type).Annotations(cascade, entgql.RelayConnection()),
		edge.To("prompt_records", PromptRecord.Type).Annotations(cascade, entgql.RelayConnection()),
		edge.To("keys", DeploymentKey.Type).Annotations(cascade, entgql.Skip()),
		edge.To("events", DeploymentEvent.Type).Annotations(cascade, entgql.RelayConnection()),
	}
}

func (Deployment) Indexes() []ent.Index {
	return []ent.Index{
		// Requests name a deployment, so a name is unique in its domain.
		index.Fields("domain_id", "name").Unique().Annotations(entsql.IndexWhere("ended_at IS NULL")),
		index.Fields("owner_id", "created_at"),
		index.Fields("project_id"),
		index.Fields("created_at").Annotations(entsql.IndexWhere("ended_at IS NULL")),
	}
}

func (Deployment) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

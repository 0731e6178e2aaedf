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

// PromptRecord is a request to a deployment and its answer. It exists only for deployments whose owner records them.
type PromptRecord struct{ ent.Schema }

func (PromptRecord) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.PromptRecord}, created{}}
}

func (PromptRecord) Fields() []ent.Field {
	return []ent.Field{
		field.String("path").Immutable(), // of the API
		field.Int("revision").Optional().Nillable().Immutable(),
		field.Int("status").Immutable(), // of the answer; 499 if the client left before it
		field.Text("request").Immutable(),
		field.Text("answer").Immutable(),
		field.Bool("truncated").Immutable(), // the request or the answer is longer
		field.Int("prompt_tokens").Immutable(),
		field.Int("completion_tokens").Immutable(),
		field.Int("first_byte_ms").Immutable(), // 0 = there was no answer
		field.Int("duration_ms").Immutable(),
		field.UUID("deployment_id", uuid.UUID{}).Immutable(),
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable(), // nil: a request without a key
	}
}

func (PromptRecord) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("user", User.Type).Field("user_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.From("deployment", Deployment.Type).Ref("prompt_records").Field("deployment_id").Unique().Required().Immutable(),
	}
}

func (PromptRecord) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "created_at"), index.Fields("created_at"), index.Fields("user_id")}
}

func (PromptRecord) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.MultiOrder()}
}

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

// SessionTemplate is a saved request for a session. It belongs to a user, or to a project,
// whose members can use it.
type SessionTemplate struct{ ent.Schema }

func (SessionTemplate) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.SessionTemplate}, created{}}
}

func (SessionTemplate) Fields() []ent.Field {
	return []ent.Field{
		field.Time("updated_at").Default(now).Annotations(entgql.OrderField("UPDATED_AT")),
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("description").Default("").MaxLen(1000),
		// The request in the form of createSession's input. The values of its environments and its
		// script are encrypted together; the request has only the names of the variables.
		field.JSON("request", json.RawMessage{}).Annotations(entgql.Skip()),
		field.Bytes("secrets_sealed").Optional().Sensitive().Annotations(entgql.Skip()),
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
		field.UUID("owner_id", uuid.UUID{}).Optional().Nillable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable(),
	}
}

func (SessionTemplate) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Required().Immutable(),
		edge.To("owner", User.Type).Field("owner_id").Unique(),
		edge.To("project", Project.Type).Field("project_id").Unique(),
	}
}

func (SessionTemplate) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("owner_id", "name").Unique().Annotations(entsql.IndexWhere("owner_id IS NOT NULL")),
		index.Fields("project_id", "name").Unique().Annotations(entsql.IndexWhere("project_id IS NOT NULL")),
		index.Fields("domain_id"),
	}
}

func (SessionTemplate) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

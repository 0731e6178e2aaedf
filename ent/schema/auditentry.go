package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// AuditEntry records one mutation or denial.
type AuditEntry struct{ ent.Schema }

func (AuditEntry) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.AuditEntry}}
}

func (AuditEntry) Fields() []ent.Field {
	return []ent.Field{
		field.Time("at").Default(now).Immutable().Annotations(entgql.OrderField("AT")),
		field.UUID("actor_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.String("actor_email").Default("").Immutable(),                      // e-mail at the time of the entry
		field.UUID("acted_as_id", uuid.UUID{}).Optional().Nillable().Immutable(), // the user whose permissions were used, if not the actor
		field.UUID("credential_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.String("action").Immutable(),
		field.String("entity").Default("").Immutable(), // entity of internal/access
		field.UUID("entity_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.String("request_id").Default("").Immutable(),
		field.String("client_address").Default("").Immutable(),
		field.String("result").Immutable(), // OK or the error's code
		field.String("message").Default("").Immutable(),
		field.Int64("duration_us").Default(0).Immutable(),
	}
}

func (AuditEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("at"), index.Fields("actor_id", "at"), index.Fields("acted_as_id", "at"),
		index.Fields("entity_id", "at"), index.Fields("domain_id", "at"), index.Fields("project_id", "at"),
	}
}

func (AuditEntry) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

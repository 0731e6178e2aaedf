package schema

import (
	"entgo.io/ent"
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
		field.Time("at").Default(now).Immutable(),
		field.UUID("actor_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.String("action").Immutable(),
		field.String("request_id").Default("").Immutable(),
		field.String("client_address").Default("").Immutable(),
		field.String("result").Immutable(), // OK or the error's code
		field.String("message").Default("").Immutable(),
	}
}

func (AuditEntry) Indexes() []ent.Index {
	return []ent.Index{index.Fields("at"), index.Fields("actor_id", "at")}
}

package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// RecoveryCode replaces the second factor at one login. Only its hash is stored.
type RecoveryCode struct{ ent.Schema }

func (RecoveryCode) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}, created{}} }

func (RecoveryCode) Fields() []ent.Field {
	return []ent.Field{
		field.Bytes("hash").Immutable().Sensitive(),
		field.Time("used_at").Optional().Nillable(),
		field.UUID("user_id", uuid.UUID{}).Immutable(),
	}
}

func (RecoveryCode) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("user", User.Type).Ref("recovery_codes").Field("user_id").Unique().Required().Immutable(),
	}
}

func (RecoveryCode) Indexes() []ent.Index { return []ent.Index{index.Fields("user_id")} }

package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// JoinToken lets one machine join the cluster. Only its hash is stored. Certificates name the
// token that they were issued for, and are valid until it is revoked.
type JoinToken struct{ ent.Schema }

func (JoinToken) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.JoinToken}, created{}}
}

func (JoinToken) Fields() []ent.Field {
	return []ent.Field{
		field.Bytes("hash").Unique().Immutable().Sensitive(),
		field.Enum("role").Values("agent", "storage").Immutable(),
		field.Time("expires_at").Immutable(),
		field.Time("used_at").Optional().Nillable(),
		field.String("used_by").Default(""),
		field.Time("revoked_at").Optional().Nillable(),
	}
}

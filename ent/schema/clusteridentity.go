package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// ClusterIdentity is the single row about the whole cluster. It lets a manager verify that its
// secrets belong to the cluster, and records the age of the database and the recovery mode.
type ClusterIdentity struct{ ent.Schema }

func (ClusterIdentity) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Other}, created{}}
}

func (ClusterIdentity) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().Immutable(),
		field.String("ca_fingerprint").NotEmpty().Immutable(),
		field.Bytes("canary_sealed").Sensitive(),           // only the cluster's key ring can decrypt it
		field.Time("led_at").Optional().Nillable(),         // when a leader last worked on this database
		field.Time("recovery_since").Optional().Nillable(), // null: not in recovery mode
		field.String("recovery_reason").Default(""),
	}
}

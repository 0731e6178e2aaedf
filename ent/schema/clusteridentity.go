package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// ClusterIdentity is the one row about the whole cluster: by it a manager knows that its
// secrets are those of the cluster, how old the database is, and whether the cluster is
// in recovery mode.
type ClusterIdentity struct{ ent.Schema }

func (ClusterIdentity) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Other}, created{}}
}

func (ClusterIdentity) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().Immutable(),
		field.String("ca_fingerprint").NotEmpty().Immutable(),
		field.Bytes("canary_sealed").Sensitive(),           // opens with the cluster's key ring alone
		field.Time("led_at").Optional().Nillable(),         // when a leader last worked on this database
		field.Time("recovery_since").Optional().Nillable(), // empty: no recovery mode
		field.String("recovery_reason").Default(""),
	}
}

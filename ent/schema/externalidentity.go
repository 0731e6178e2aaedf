package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// ExternalIdentity binds a user to the subject of an identity provider.
type ExternalIdentity struct{ ent.Schema }

func (ExternalIdentity) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Other}, created{}}
}

func (ExternalIdentity) Fields() []ent.Field {
	return []ent.Field{
		field.String("subject").NotEmpty().Immutable(),
		field.UUID("provider_id", uuid.UUID{}).Immutable(),
		field.UUID("user_id", uuid.UUID{}).Immutable(),
	}
}

func (ExternalIdentity) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("provider", IdentityProvider.Type).Ref("identities").Field("provider_id").Unique().Required().Immutable(),
		edge.From("user", User.Type).Ref("external_identities").Field("user_id").Unique().Required().Immutable(),
	}
}

func (ExternalIdentity) Indexes() []ent.Index {
	return []ent.Index{index.Fields("provider_id", "subject").Unique(), index.Fields("user_id")}
}

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

// Keypair is an access key and a secret that signs requests. The secret is stored encrypted,
// because verifying a signature needs it.
type Keypair struct{ ent.Schema }

func (Keypair) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Keypair}, created{}} }

func (Keypair) Fields() []ent.Field {
	return []ent.Field{
		field.String("access_key").Unique().Immutable().Annotations(entgql.OrderField("ACCESS_KEY")),
		field.String("name").NotEmpty().MaxLen(64),
		field.Bytes("secret_sealed").Sensitive().Annotations(entgql.Skip()),
		field.Bool("active").Default(true),
		field.Bool("is_default").Default(false),
		field.Int("rate_limit").Optional().Nillable(), // requests per window; null: the default of the cluster
		field.Time("last_used_at").Optional().Nillable(),
		field.Time("rotated_at").Optional().Nillable(),
		field.Time("expires_at").Optional().Nillable(),            // expiry of the secret
		field.UUID("maker_id", uuid.UUID{}).Optional().Nillable(), // the token or keypair that created the secret; revoking that revokes this one
		field.UUID("user_id", uuid.UUID{}).Immutable(),
	}
}

func (Keypair) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("user", User.Type).Ref("keypairs").Field("user_id").Unique().Required().Immutable(),
		edge.To("policies", PolicyAttachment.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (Keypair) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("user_id"),
		index.Fields("maker_id"),
		index.Fields("user_id").StorageKey("keypair_default").Unique().Annotations(entsql.IndexWhere("is_default")),
	}
}

func (Keypair) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

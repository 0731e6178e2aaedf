package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// SSHKey is a public key with which its user can log in over SSH.
type SSHKey struct{ ent.Schema }

func (SSHKey) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.SSHKey}, created{}} }

func (SSHKey) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("public_key").NotEmpty().Immutable(), // one line as in authorized_keys, without a comment
		field.String("fingerprint").Immutable(),           // SHA256:…
		field.Time("expires_at").Optional().Nillable().Immutable(),
		field.UUID("maker_id", uuid.UUID{}).Optional().Nillable().Immutable(), // the token or keypair that added it; revoking that revokes this one
		field.UUID("user_id", uuid.UUID{}).Immutable(),
	}
}

func (SSHKey) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("user", User.Type).Ref("ssh_keys").Field("user_id").Unique().Required().Immutable(),
	}
}

func (SSHKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id", "fingerprint").Unique(), index.Fields("maker_id")}
}

func (SSHKey) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

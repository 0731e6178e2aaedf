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

// AccessToken is a bearer credential of a user. Only its hash is stored.
type AccessToken struct{ ent.Schema }

func (AccessToken) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.AccessToken}, created{}}
}

func (AccessToken) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("prefix").Immutable(),
		field.Bytes("hash").Unique().Immutable().Sensitive().Annotations(entgql.Skip()),
		field.Strings("scopes").Default([]string{}).Immutable(),                 // token scopes of internal/access
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(), // if set, the token works only in this project
		field.Time("expires_at").Optional().Nillable().Immutable(),
		field.UUID("maker_id", uuid.UUID{}).Optional().Nillable().Immutable(), // the token or keypair that created it; revoking that revokes this one
		field.Time("last_used_at").Optional().Nillable(),
		field.Time("revoked_at").Optional().Nillable(),
		field.UUID("user_id", uuid.UUID{}).Immutable(),
	}
}

func (AccessToken) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("user", User.Type).Ref("access_tokens").Field("user_id").Unique().Required().Immutable(),
		edge.To("project", Project.Type).Field("project_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (AccessToken) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id"), index.Fields("maker_id")}
}

func (AccessToken) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

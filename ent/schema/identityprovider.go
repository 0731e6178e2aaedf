package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// IdentityProvider is an OpenID Connect issuer whose users can log in.
type IdentityProvider struct{ ent.Schema }

func (IdentityProvider) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.IdentityProvider}, created{}}
}

func (IdentityProvider) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("display_name").Default(""),
		field.String("issuer").NotEmpty(),
		field.String("client_id").NotEmpty(),
		field.Bytes("client_secret_sealed").Sensitive().Annotations(entgql.Skip()),
		field.Strings("scopes").Default([]string{}),
		field.Bool("active").Default(true),
		field.Bool("auto_provision").Default(false),        // creates accounts at the first login
		field.Strings("email_domains").Default([]string{}), // allowed domains; empty: all
		field.UUID("domain_id", uuid.UUID{}),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable(), // project of provisioned users
	}
}

func (IdentityProvider) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Required(),
		edge.To("project", Project.Type).Field("project_id").Unique(),
		edge.To("identities", ExternalIdentity.Type).Annotations(entgql.Skip(), entsql.OnDelete(entsql.Cascade)),
	}
}

func (IdentityProvider) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

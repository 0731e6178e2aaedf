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

// User is a person or a program with a login; one domain, many projects.
type User struct{ ent.Schema }

func (User) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.User}, created{}}
}

func (User) Fields() []ent.Field {
	return []ent.Field{
		field.String("email").Unique().NotEmpty().MaxLen(254).Annotations(entgql.OrderField("EMAIL")), // lower case
		field.String("username").Unique().NotEmpty().MaxLen(64),
		field.String("full_name").Default(""),
		field.String("password_hash").Sensitive().Annotations(entgql.Skip()),
		field.Bool("initial_password").Default(false).Annotations(entgql.Skip()),
		field.Enum("role").Values("user", "admin", "superadmin", "monitor").Default("user"),
		field.Enum("status").Values("active", "inactive", "before_verification", "deleted").Default("active"),
		field.Time("last_login_at").Optional().Nillable(),
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
	}
}

func (User) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("domain", Domain.Type).Ref("users").Field("domain_id").Unique().Required().Immutable(),
		edge.To("memberships", Membership.Type),
		edge.To("policy", ResourcePolicy.Type).Unique(),
		edge.To("access_tokens", AccessToken.Type).Annotations(entgql.Skip()),
		edge.To("login_sessions", LoginSession.Type).Annotations(entgql.Skip()),
	}
}

func (User) Indexes() []ent.Index { return []ent.Index{index.Fields("domain_id")} }

func (User) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

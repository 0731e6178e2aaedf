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
		field.Bool("password_change_required").Default(false),
		field.Time("password_changed_at").Optional().Nillable(),
		field.Strings("allowed_addresses").Default([]string{}), // prefixes; empty: all addresses
		field.Int("container_uid").Optional().Nillable(),
		field.Int("container_gid").Optional().Nillable(),
		field.Ints("container_gids").Default([]int{}), // supplementary
		field.Bytes("totp_sealed").Optional().Sensitive().Annotations(entgql.Skip()),
		field.Time("totp_enabled_at").Optional().Nillable(),            // null while the secret is not confirmed
		field.Int64("totp_step").Default(0).Annotations(entgql.Skip()), // the step of the last used code
		field.Time("last_login_at").Optional().Nillable(),
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
	}
}

func (User) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("domain", Domain.Type).Ref("users").Field("domain_id").Unique().Required().Immutable(),
		edge.To("memberships", Membership.Type),
		edge.To("policies", PolicyAttachment.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("keypairs", Keypair.Type).Annotations(entgql.Skip()),
		edge.To("ssh_keys", SSHKey.Type).Annotations(entgql.Skip()),
		edge.To("recovery_codes", RecoveryCode.Type).Annotations(entgql.Skip()),
		edge.To("external_identities", ExternalIdentity.Type).Annotations(entgql.Skip()),
		edge.To("role_grants", RoleGrant.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("access_tokens", AccessToken.Type).Annotations(entgql.Skip()),
		edge.To("login_sessions", LoginSession.Type).Annotations(entgql.Skip()),
	}
}

func (User) Indexes() []ent.Index { return []ent.Index{index.Fields("domain_id")} }

func (User) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

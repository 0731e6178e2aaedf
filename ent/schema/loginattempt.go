package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// LoginAttempt is one entry of the login history. Its user may have been deleted, or may never
// have existed.
type LoginAttempt struct{ ent.Schema }

func (LoginAttempt) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.LoginAttempt}} }

func (LoginAttempt) Fields() []ent.Field {
	return []ent.Field{
		field.Time("at").Default(now).Immutable().Annotations(entgql.OrderField("AT")),
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.String("email").Default("").Immutable(),
		field.Enum("method").Values("password", "oidc").Default("password").Immutable(),
		field.Enum("result").Values("success", "wrong_credentials", "wrong_code", "code_needed", "throttled",
			"not_active", "address_refused", "too_many_logins", "logout", "revoked", "evicted", "expired").Immutable(),
		field.String("client_address").Default("").Immutable(),
		field.String("user_agent").Default("").Immutable(),
		field.UUID("login_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (LoginAttempt) Indexes() []ent.Index {
	return []ent.Index{index.Fields("at"), index.Fields("user_id", "at"), index.Fields("domain_id", "at")}
}

func (LoginAttempt) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

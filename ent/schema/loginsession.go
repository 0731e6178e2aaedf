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

// LoginSession is one login of a browser. Only the hash of its cookie is stored.
type LoginSession struct{ ent.Schema }

func (LoginSession) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.LoginSession}, created{}}
}

func (LoginSession) Fields() []ent.Field {
	return []ent.Field{
		field.Bytes("hash").Unique().Immutable().Sensitive().Annotations(entgql.Skip()),
		field.Time("expires_at").Immutable(),
		field.Time("last_seen_at").Default(now).Annotations(entgql.OrderField("LAST_SEEN_AT")),
		field.Time("revoked_at").Optional().Nillable(),
		field.Enum("method").Values("password", "oidc").Default("password").Immutable(),
		field.String("client_address").Default("").Immutable(),
		field.String("user_agent").Default("").Immutable(),
		field.UUID("user_id", uuid.UUID{}).Immutable(),
	}
}

func (LoginSession) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("user", User.Type).Ref("login_sessions").Field("user_id").Unique().Required().Immutable(),
	}
}

func (LoginSession) Indexes() []ent.Index { return []ent.Index{index.Fields("user_id")} }

func (LoginSession) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

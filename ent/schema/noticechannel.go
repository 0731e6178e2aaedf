package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/noticekind"
)

// NoticeChannel is an address to which notices of a person, or of the cluster, are sent. The channel of e-mail has no row:
// its address is the person's.
type NoticeChannel struct{ ent.Schema }

func (NoticeChannel) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.NoticeChannel}, created{}}
}

func (NoticeChannel) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("type").GoType(noticekind.Route("")).Immutable(),
		field.String("name").NotEmpty().MaxLen(256), // bytes of 64 characters
		field.String("host"), // the only part of the address that is shown: the rest can be a secret
		field.Bytes("address_sealed").Sensitive().Annotations(entgql.Skip()),
		field.Bytes("secret_sealed").Optional().Sensitive().Annotations(entgql.Skip()), // signs the requests of webhooks
		field.Bool("enabled").Default(true),
		field.String("disabled_reason").Default(""),                                                     // why the platform disabled it
		field.Time("failing_since").Optional().Nillable(),                                               // NULL: the last delivery succeeded
		field.Time("paused_until").Optional().Nillable().Annotations(entgql.Skip()),                     // back-off, or a delivery is in progress
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable().Annotations(entgql.Skip()), // NULL: of the cluster
	}
}

func (NoticeChannel) Indexes() []ent.Index { return []ent.Index{index.Fields("user_id")} }

func (NoticeChannel) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

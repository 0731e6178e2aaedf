package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/noticekind"
)

// NoticeDelivery is a notice on its way through one channel. Its id is the same in every attempt, so that receivers can drop
// duplicates.
type NoticeDelivery struct{ ent.Schema }

func (NoticeDelivery) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.NoticeDelivery}, created{}}
}

func (NoticeDelivery) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("type").GoType(noticekind.Route("")).Immutable(),
		field.Enum("kind").GoType(noticekind.Kind("")).Immutable(), // of the notice
		field.Enum("status").Values("waiting", "sent", "dead", "dropped").Default("waiting"),
		field.Int("attempts").Default(0),
		field.String("message").Default(""),                 // the last error
		field.Time("due_at").Annotations(entgql.Skip()),     // not sent before
		field.Time("expires_at").Annotations(entgql.Skip()), // then it becomes a dead letter
		field.Time("sent_at").Optional().Nillable(),
		field.UUID("batch", uuid.UUID{}).Optional().Nillable().Annotations(entgql.Skip()), // the mail that it is part of
		field.UUID("notice_id", uuid.UUID{}).Immutable(),
		field.UUID("channel_id", uuid.UUID{}).Optional().Nillable().Immutable(),                         // NULL: e-mail
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable().Annotations(entgql.Skip()), // NULL: of the cluster
	}
}

func (NoticeDelivery) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("channel_id", "id").Annotations(entsql.IndexWhere("(status)::text = 'waiting'::text")),
		index.Fields("user_id", "id").Annotations(entsql.IndexWhere("((status)::text = 'waiting'::text) AND (channel_id IS NULL)")),
		index.Fields("user_id", "created_at"), index.Fields("created_at"), index.Fields("notice_id"),
	}
}

func (NoticeDelivery) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

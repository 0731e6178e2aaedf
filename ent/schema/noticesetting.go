package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/noticekind"
)

// NoticeSetting is what a person chose about their notices.
type NoticeSetting struct{ ent.Schema }

func (NoticeSetting) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}} }

func (NoticeSetting) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("language").Values("en", "ko", "ja").Default("en"), // of mails
		field.JSON("routes", noticekind.Choice{}).Default(noticekind.Choice{}),
		field.UUID("user_id", uuid.UUID{}).Unique().Immutable(),
	}
}

func (NoticeSetting) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

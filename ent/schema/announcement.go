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

// Announcement is a text of the administrators that the page and the client show to its audience.
type Announcement struct{ ent.Schema }

func (Announcement) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Announcement}, created{}}
}

func (Announcement) Fields() []ent.Field {
	return []ent.Field{
		field.String("text").NotEmpty(), // Markdown without HTML
		field.Enum("severity").GoType(noticekind.Severity("")).Default(string(noticekind.Info)),
		field.Enum("audience").Values("everyone", "domain", "project", "admins").Default("everyone"),
		field.UUID("scope_id", uuid.UUID{}).Optional().Nillable(), // the domain or project
		field.Bool("dismissable").Default(true),
		field.Time("starts_at").Default(now),
		field.Time("ends_at").Optional().Nillable(), // NULL: until it is deleted
	}
}

func (Announcement) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

// AnnouncementDismissal says that a person does not want to see an announcement again.
type AnnouncementDismissal struct{ ent.Schema }

func (AnnouncementDismissal) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}} }

func (AnnouncementDismissal) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("announcement_id", uuid.UUID{}).Immutable(),
		field.UUID("user_id", uuid.UUID{}).Immutable(),
	}
}

func (AnnouncementDismissal) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id", "announcement_id").Unique(), index.Fields("announcement_id")}
}

func (AnnouncementDismissal) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

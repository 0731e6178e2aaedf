package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/berthhq/berth/internal/id"
)

// NoticeMark remembers an event or a condition about which notices exist, so that there is no second one.
type NoticeMark struct{ ent.Schema }

func (NoticeMark) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}} }

func (NoticeMark) Fields() []ent.Field {
	return []ent.Field{
		field.String("key").Unique().Immutable(),
		field.Bool("lasting").Default(false).Immutable(), // a condition: the mark stays until the condition ends
		field.Time("at").Immutable(),
	}
}

func (NoticeMark) Indexes() []ent.Index { return []ent.Index{index.Fields("at")} }

func (NoticeMark) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

// NoticeCursor is the time up to which the events of a table have been read.
type NoticeCursor struct{ ent.Schema }

func (NoticeCursor) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}} }

func (NoticeCursor) Fields() []ent.Field {
	return []ent.Field{field.String("source").Unique().Immutable(), field.Time("position")}
}

func (NoticeCursor) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

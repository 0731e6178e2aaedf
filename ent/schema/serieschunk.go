package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// SeriesChunk has measurements of one span of time, in the form of package series. Samples are stored by the machine or
// deployment that they come from, and the points of coarser grains by their subject. Rows have no edges: a history outlives
// its subject.
type SeriesChunk struct{ ent.Schema }

func (SeriesChunk) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"), // a number, because the table is large
		field.UUID("source", uuid.UUID{}).Immutable(),
		field.Int16("grain").Immutable(), // 0: samples of a minute; 1: minutes of an hour; 2: hours of a day; 3: days of a month
		field.Time("start").Immutable(),
		field.Bytes("data"),
	}
}

func (SeriesChunk) Indexes() []ent.Index {
	return []ent.Index{index.Fields("source", "grain", "start").Unique(), index.Fields("grain", "start")}
}

func (SeriesChunk) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

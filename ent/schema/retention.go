package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// Retention is how long rows of a category are kept.
type Retention struct{ ent.Schema }

func (Retention) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}} }

func (Retention) Fields() []ent.Field {
	return []ent.Field{
		field.String("category").Unique().Immutable(),
		field.Int("days"), // 0: forever
		field.Time("swept_at").Optional().Nillable(),
		field.Int64("removed").Default(0), // rows removed in total
	}
}

package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// Fence stores the epoch of the leader. A transaction of an older leader finds a higher epoch
// here and changes nothing.
type Fence struct{ ent.Schema }

func (Fence) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Other}}
}

func (Fence) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().Immutable(),
		field.Int64("epoch").Default(0),
	}
}

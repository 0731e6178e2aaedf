package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// SlotType says how a slot counts and what people call it.
type SlotType struct{ ent.Schema }

func (SlotType) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.SlotType}}
}

func (SlotType) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().Immutable(),
		field.String("kind"),
		field.String("display_name").Default(""),
		field.String("description").Default(""),
		field.String("unit").Default(""),
		field.String("icon").Default(""),
		field.String("quantum").Default("1"),
		field.JSON("exclusive_with", []string{}).Default([]string{}),
		// The only amounts that a kernel gets on any agent, growing; empty: any. Follows
		// from what the agents with the slot say.
		field.JSON("allowed_counts", []int{}).Default([]int{}),
		// A name of its devices' one amount, of which all such slots take parts.
		field.Bool("unified").Default(false),
	}
}

package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// SlotType defines the unit and the display name of a slot.
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
		// The amounts that one kernel can have on any agent, ascending; empty: any amount.
		// Derived from the reports of the agents.
		field.JSON("allowed_counts", []int{}).Default([]int{}),
		// True if the slot is one of several names for the same capacity of a device.
		field.Bool("unified").Default(false),
	}
}

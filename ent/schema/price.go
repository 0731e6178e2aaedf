package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// Price is a price of slots or of tokens from a time on, until the next price of the same thing
// begins. It never changes, so that the cost of the past stays what it was.
type Price struct{ ent.Schema }

func (Price) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Price}, created{}}
}

func (Price) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("kind").Values("slot_hour", "input_tokens", "cached_input_tokens", "output_tokens").Immutable(),
		field.String("slot").Default("").MaxLen(64).Immutable(),                        // of slot_hour
		field.Int64("micros").NonNegative().Immutable().Annotations(entgql.Skip()),     // millionths of the currency for a unit and hour, or for 1,000 tokens
		field.Time("valid_from").Immutable(),                                           //
		field.UUID("resource_group_id", uuid.UUID{}).Optional().Nillable().Immutable(), // of slot_hour; NULL: all
		field.UUID("deployment_id", uuid.UUID{}).Optional().Nillable().Immutable(),     // of tokens; NULL: all
		field.UUID("creator_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (Price) Edges() []ent.Edge {
	cascade := entsql.OnDelete(entsql.Cascade)
	return []ent.Edge{
		edge.To("resource_group", ResourceGroup.Type).Field("resource_group_id").Unique().Immutable().Annotations(cascade),
		edge.To("deployment", Deployment.Type).Field("deployment_id").Unique().Immutable().Annotations(cascade),
		edge.To("creator", User.Type).Field("creator_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.SetNull)),
	}
}

func (Price) Indexes() []ent.Index { return []ent.Index{index.Fields("valid_from")} }

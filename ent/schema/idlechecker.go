package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// IdleChecker is one rule by which sessions that are of no use any more are
// ended. What it binds, its bindings say.
type IdleChecker struct{ ent.Schema }

func (IdleChecker) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.IdleChecker}, created{}}
}

func (IdleChecker) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("description").Default(""),
		field.Enum("kind").Values("lifetime", "network", "utilization", "memory").Immutable(),
		field.Bool("enabled").Default(true),
		field.Int("timeout"),                                                         // seconds: of life, without traffic, or the window that is looked at
		field.Int("grace").Default(0),                                                // seconds that a new session is left alone
		field.Int("new_user_grace").Default(0),                                       // seconds that the sessions of a new user are left alone
		field.Int("warning").Default(300),                                            // seconds between the warning and the end
		field.Enum("match").Values("all", "any").Default("all"),                      // of the thresholds
		field.JSON("thresholds", map[string]float64{}).Default(map[string]float64{}), // percent, by kind of slot
		field.Strings("session_types").Default([]string{"interactive"}),
	}
}

func (IdleChecker) Edges() []ent.Edge {
	return []ent.Edge{edge.To("bindings", IdleBinding.Type).Annotations(entsql.OnDelete(entsql.Cascade))}
}

func (IdleChecker) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

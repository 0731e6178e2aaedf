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

// IdleChecker is a rule that ends sessions that are not used. Its bindings select the
// sessions.
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
		field.Int("timeout"),                                                         // seconds: the lifetime, the time without traffic, or the measured window
		field.Int("grace").Default(0),                                                // seconds during which a new session is not checked
		field.Int("new_user_grace").Default(0),                                       // seconds during which the sessions of a new user are not checked
		field.Int("warning").Default(300),                                            // seconds between the warning and the end
		field.Enum("match").Values("all", "any").Default("all"),                      // all or any of the thresholds
		field.JSON("thresholds", map[string]float64{}).Default(map[string]float64{}), // percent, by kind of slot
		field.Strings("session_types").Default([]string{"interactive"}),
		field.Strings("ignored_apps").Default([]string{}), // for the kind network: apps whose traffic does not count as activity
	}
}

func (IdleChecker) Edges() []ent.Edge {
	return []ent.Edge{edge.To("bindings", IdleBinding.Type).Annotations(entsql.OnDelete(entsql.Cascade))}
}

func (IdleChecker) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// Registry is a container registry that images come from.
type Registry struct{ ent.Schema }

func (Registry) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Registry}, created{}}
}

func (Registry) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("host").Unique().NotEmpty(),
		field.Bool("plain_http").Default(false),
		field.String("username").Default("").Annotations(entgql.Skip()),
		field.Bytes("password_sealed").Optional().Sensitive().Annotations(entgql.Skip()),
		field.Time("last_scanned_at").Optional().Nillable(),
	}
}

func (Registry) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("images", Image.Type).Annotations(entgql.Skip()),
		edge.From("domains", Domain.Type).Ref("registries").Annotations(entgql.Skip()),
	}
}

func (Registry) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

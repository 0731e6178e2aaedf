package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
)

// StorageProxy serves the folders of its volumes.
type StorageProxy struct{ ent.Schema }

func (StorageProxy) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.StorageProxy}, created{}}
}

func (StorageProxy) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty(),
		field.String("version").Default(""),
		field.String("public_url").Default(""),
		field.Time("last_seen_at").Default(now),
	}
}

func (StorageProxy) Edges() []ent.Edge {
	return []ent.Edge{edge.To("volumes", Volume.Type).Annotations(entgql.Skip())}
}

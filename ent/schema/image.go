package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// Image is a container image that sessions can start from.
type Image struct{ ent.Schema }

func (Image) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Image}, created{}}
}

func (Image) Fields() []ent.Field {
	return []ent.Field{
		field.String("reference").Immutable(),
		field.String("name").Immutable().Annotations(entgql.OrderField("NAME")),
		field.String("architecture"),
		field.String("digest"),
		field.Int64("size_bytes").Default(0),
		field.JSON("labels", map[string]string{}).Default(map[string]string{}),
		field.Enum("status").Values("alive", "gone").Default("alive"),
		field.String("tag_digest").Default(""), // that the tag has at the registry; another than digest: the tag moved
		field.Enum("tag_policy").Values("registry", "pinned", "follow").Default("registry"),
		field.String("deprecated").Default(""),                       // the message of a deprecated image
		field.UUID("registry_id", uuid.UUID{}).Optional().Nillable(), // null after the registry was removed
	}
}

func (Image) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("versions", ImageVersion.Type).Annotations(entsql.OnDelete(entsql.Cascade), entgql.Skip()),
		edge.From("registry", Registry.Type).Ref("images").Field("registry_id").Unique(),
	}
}

func (Image) Indexes() []ent.Index {
	return []ent.Index{index.Fields("reference", "architecture").Unique(), index.Fields("name"), index.Fields("registry_id")}
}

func (Image) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

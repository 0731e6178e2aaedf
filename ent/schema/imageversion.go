package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/report"
)

// ImageVersion is the content that the tag of an image had at some time.
type ImageVersion struct{ ent.Schema }

func (ImageVersion) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ImageVersion}, created{}}
}

func (ImageVersion) Fields() []ent.Field {
	return []ent.Field{
		field.String("digest").Immutable(),
		field.Int64("size_bytes").Default(0),
		field.JSON("labels", map[string]string{}).Default(map[string]string{}),
		field.Strings("environment").Default([]string{}),
		field.JSON("layers", []report.Layer{}).Default([]report.Layer{}).Annotations(entgql.Skip()),
		field.UUID("image_id", uuid.UUID{}).Immutable(),
	}
}

func (ImageVersion) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("image", Image.Type).Ref("versions").Field("image_id").Unique().Required().Immutable().Annotations(entgql.Skip()),
	}
}

func (ImageVersion) Indexes() []ent.Index {
	return []ent.Index{index.Fields("image_id", "digest").Unique()}
}

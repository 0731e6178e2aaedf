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
		field.String("signed_by").Default(""), // as Image.signed_by
		field.UUID("image_id", uuid.UUID{}).Immutable(),
		// Of a version that was saved from a session or built: the session, the reference of its image, the bytes of
		// layers that no public image has, and the user.
		field.UUID("session_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.String("base").Default("").Immutable(),
		field.Int64("added_bytes").Default(0).Immutable(),
		field.UUID("creator_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (ImageVersion) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("creator", User.Type).Field("creator_id").Unique().Immutable(),
		edge.From("image", Image.Type).Ref("versions").Field("image_id").Unique().Required().Immutable().Annotations(entgql.Skip()),
	}
}

func (ImageVersion) Indexes() []ent.Index {
	return []ent.Index{index.Fields("image_id", "digest").Unique(), index.Fields("creator_id")}
}

package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// ImageCopy is an image on an agent, present or being pulled.
type ImageCopy struct{ ent.Schema }

func (ImageCopy) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.ImageCopy}} }

func (ImageCopy) Fields() []ent.Field {
	return []ent.Field{
		field.String("reference").Immutable().Annotations(entgql.Skip()),
		field.String("digest"),
		field.Enum("state").Values("pulling", "partial", "present"),
		field.Int64("done_bytes").Default(0),
		field.Int64("total_bytes").Default(0), // 0 = not known yet
		field.Text("message").Default(""),     // why files cannot be read now, or why it was pulled as a whole
		field.Time("used_at").Optional().Nillable(),
		field.UUID("agent_id", uuid.UUID{}).Immutable(),
	}
}

func (ImageCopy) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("agent", Agent.Type).Ref("image_copies").Field("agent_id").Unique().Required().Immutable(),
	}
}

func (ImageCopy) Indexes() []ent.Index {
	return []ent.Index{index.Fields("agent_id", "reference").Unique(), index.Fields("reference")}
}

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

// Image is a container image that sessions can start from. A public one comes from a registry. One that
// was made of a session belongs to its owner, who can share it with a project.
type Image struct{ ent.Schema }

func (Image) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Image}, created{}}
}

func (Image) Fields() []ent.Field {
	return []ent.Field{
		field.String("reference"), // its owner can rename an image that was made of a session
		field.String("name").Annotations(entgql.OrderField("NAME")),
		field.String("architecture"),
		field.String("digest"),
		field.Int64("size_bytes").Default(0),
		field.JSON("labels", map[string]string{}).Default(map[string]string{}),
		field.Enum("status").Values("alive", "gone").Default("alive"),
		field.String("tag_digest").Default(""), // that the tag has at the registry; another than digest: the tag moved
		field.String("signed_by").Default(""),  // fingerprint of the key of its registry that signed the digest
		field.Enum("tag_policy").Values("registry", "pinned", "follow").Default("registry"),
		field.String("deprecated").Default(""),                       // the message of a deprecated image
		field.UUID("registry_id", uuid.UUID{}).Optional().Nillable(), // null after the registry was removed
		field.Enum("visibility").Values("public", "project", "private").Default("public"),
		field.String("description").Default("").MaxLen(1000),
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Annotations(entgql.Skip()),
		field.UUID("owner_id", uuid.UUID{}).Optional().Nillable(),
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable(),
		field.UUID("session_id", uuid.UUID{}).Optional().Nillable(), // that it was made of; it may be gone
		field.String("base").Default(""),                            // reference of that session's image
		field.Int64("added_bytes").Default(0),                       // of layers that no public image has
		field.Time("committed_at").Optional().Nillable(),            // the last time
	}
}

func (Image) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("versions", ImageVersion.Type).Annotations(entsql.OnDelete(entsql.Cascade), entgql.Skip()),
		edge.From("registry", Registry.Type).Ref("images").Field("registry_id").Unique(),
		edge.To("auto_pull", ResourceGroup.Type), // whose agents keep it
		edge.To("owner", User.Type).Field("owner_id").Unique(),
		edge.To("project", Project.Type).Field("project_id").Unique(),
	}
}

func (Image) Indexes() []ent.Index {
	return []ent.Index{index.Fields("reference", "architecture").Unique(), index.Fields("name"), index.Fields("registry_id"), index.Fields("owner_id"), index.Fields("project_id")}
}

func (Image) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

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

// ImageBuild is a build of an image in a session of its own.
type ImageBuild struct{ ent.Schema }

func (ImageBuild) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ImageBuild}, created{}, owned{}}
}

func (ImageBuild) Fields() []ent.Field {
	return []ent.Field{
		field.String("repository").Immutable().Annotations(entgql.Skip()), // of the image, without the host
		field.String("tag").Immutable().Annotations(entgql.Skip()),
		field.String("name").Immutable(), // of the image: name:tag
		field.Enum("kind").Values("recipe", "dockerfile", "requirements", "environment", "devcontainer", "git").Immutable(),
		// Of a Git repository, these three are known once it was fetched.
		field.Text("dockerfile"),                          // the description, as a Dockerfile
		field.String("digest").Annotations(entgql.Skip()), // of everything that the result depends on
		field.String("base"),                              // reference of the image that the last stage is based on
		field.String("git_address").Default("").Immutable(),
		field.String("git_ref").Default("").Immutable(), // branch, tag or commit; "" = the default branch
		field.String("git_directory").Default("").Immutable(),
		field.String("git_commit").Default(""),
		field.Bool("shared").Default(false).Immutable(), // the image is one of the project
		field.String("description").Optional().Nillable().MaxLen(1000).Immutable().Annotations(entgql.Skip()),
		field.Enum("status").Values("waiting", "running", "succeeded", "failed", "cancelled").Default("waiting"),
		field.String("message").Default(""),     // why it failed, or what it waits for
		field.String("failed_step").Default(""), // instruction of the Dockerfile
		field.Int("steps").Default(0),
		field.Int("cached_steps").Default(0), // that did not run
		field.Int64("layer_bytes").Default(0),
		field.Int("attempt").Default(0).Annotations(entgql.Skip()),
		field.String("image_digest").Default(""),
		field.String("cache_tag").Default("").Annotations(entgql.Skip()), // of the project's cache; "" = none was saved
		// The context, the build arguments and the secrets, encrypted together; empty after the end.
		field.Bytes("input_sealed").Optional().Sensitive().Annotations(entgql.Skip()),
		field.UUID("session_id", uuid.UUID{}).Optional().Nillable(),
		field.UUID("image_id", uuid.UUID{}).Optional().Nillable(),
		field.UUID("task_id", uuid.UUID{}).Optional().Nillable().Annotations(entgql.Skip()),
		field.Time("started_at").Optional().Nillable(),
		field.Time("ended_at").Optional().Nillable(),
	}
}

func (ImageBuild) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("project", Project.Type).Field("project_id").Unique().Required().Immutable(),
		edge.To("owner", User.Type).Field("owner_id").Unique().Required().Immutable(),
		edge.To("session", Session.Type).Field("session_id").Unique().Annotations(entsql.OnDelete(entsql.SetNull)),
		edge.To("image", Image.Type).Field("image_id").Unique().Annotations(entsql.OnDelete(entsql.SetNull)),
	}
}

func (ImageBuild) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("owner_id", "created_at"),
		index.Fields("domain_id"),
		index.Fields("project_id", "ended_at"),
		index.Fields("session_id"),
		index.Fields("image_id"),
		index.Fields("created_at").Annotations(entsql.IndexWhere("ended_at IS NULL")),
	}
}

func (ImageBuild) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

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

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
)

// Vfolder is a virtual folder: files that outlive sessions.
type Vfolder struct{ ent.Schema }

func (Vfolder) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Vfolder}, created{}}
}

func (Vfolder) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.Enum("status").Values("cloning", "ready", "trash", "deleting", "deleted").Default("ready"),
		field.Enum("usage_mode").Values("general", "data", "model").Default("general"),
		field.Enum("permission").GoType(access.FolderPermission("")).Default(string(access.ReadWrite)), // permission of the project's members
		field.String("path").Default("").Annotations(entgql.Skip()),                                    // path below the volume's root
		field.Time("deleted_at").Optional().Nillable(),                                                 // when it was moved to the trash
		field.Int64("used_bytes").Optional().Nillable(),
		field.Int64("file_count").Optional().Nillable(),
		field.Time("measured_at").Optional().Nillable(),
		field.Time("last_used_at").Optional().Nillable(), // when a session that mounts it was last created
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
		field.UUID("owner_id", uuid.UUID{}).Optional().Nillable(), // changes together with the scope when a folder is transferred
		field.UUID("project_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("creator_id", uuid.UUID{}).Immutable(),
		field.UUID("quota_scope_id", uuid.UUID{}),
		field.UUID("cloned_from_id", uuid.UUID{}).Optional().Nillable().Immutable(), // may have been deleted
	}
}

func (Vfolder) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("quota_scope", QuotaScope.Type).Field("quota_scope_id").Unique().Required(),
		edge.To("owner", User.Type).Field("owner_id").Unique(),
		edge.To("project", Project.Type).Field("project_id").Unique().Immutable(),
		edge.To("creator", User.Type).Field("creator_id").Unique().Required().Immutable(),
		edge.To("shares", VfolderShare.Type).Annotations(entgql.Skip(), entsql.OnDelete(entsql.Cascade)),
		edge.To("mounts", SessionMount.Type).Annotations(entgql.Skip()),
	}
}

func (Vfolder) Indexes() []ent.Index {
	return []ent.Index{
		// A folder in the trash does not block its name.
		index.Fields("owner_id", "name").Unique().Annotations(entsql.IndexWhere("deleted_at IS NULL")),
		index.Fields("project_id", "name").Unique().Annotations(entsql.IndexWhere("deleted_at IS NULL")),
		index.Fields("quota_scope_id"),
		// Spelled as PostgreSQL prints it; otherwise every migration would create the index
		// again.
		index.Fields("status").Annotations(entsql.IndexWhere("(status)::text = 'deleting'::text")),
		index.Fields("deleted_at").Annotations(entsql.IndexWhere("(status)::text = 'trash'::text")),
	}
}

func (Vfolder) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

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

// VfolderShare shares a folder with one person; until it is accepted, it is an invitation. For
// a project's folder, it sets the permission of one member, which replaces the permission of
// all members, and needs no acceptance.
type VfolderShare struct{ ent.Schema }

func (VfolderShare) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.VfolderShare}, created{}}
}

func (VfolderShare) Fields() []ent.Field {
	return []ent.Field{
		field.String("email").NotEmpty().MaxLen(254).Immutable(), // in lower case
		field.Enum("permission").GoType(access.FolderPermission("")),
		field.Enum("status").Values("pending", "accepted", "declined", "withdrawn", "left").Default("pending"),
		field.Time("answered_at").Optional().Nillable(),
		field.Time("ended_at").Optional().Nillable(), // declined, withdrawn or left
		field.UUID("vfolder_id", uuid.UUID{}).Immutable(),
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable(), // the user who accepted
		field.UUID("inviter_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (VfolderShare) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("vfolder", Vfolder.Type).Ref("shares").Field("vfolder_id").Unique().Required().Immutable(),
		edge.To("user", User.Type).Field("user_id").Unique().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("inviter", User.Type).Field("inviter_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.SetNull)),
	}
}

func (VfolderShare) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("vfolder_id", "email").Unique().Annotations(entsql.IndexWhere("ended_at IS NULL")),
		index.Fields("user_id").Annotations(entsql.IndexWhere("(status)::text = 'accepted'::text")),
		index.Fields("email").Annotations(entsql.IndexWhere("(status)::text = 'pending'::text")),
	}
}

func (VfolderShare) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

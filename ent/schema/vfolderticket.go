package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// VfolderTicket records that a user has tickets for the files of a folder, so that they can be
// revoked when the user loses access. The row is created or renewed when a ticket is signed,
// and deleted after the last ticket has expired.
type VfolderTicket struct{ ent.Schema }

func (VfolderTicket) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.VfolderTicket}} }

func (VfolderTicket) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("user_id", uuid.UUID{}).Immutable(),
		field.UUID("vfolder_id", uuid.UUID{}).Immutable(),
		field.Bool("write").Immutable(), // for uploads; otherwise for downloads
		field.Time("issued_at"),         // time of the last ticket
		field.Time("expires_at"),
		field.Time("revoked_at").Optional().Nillable(), // tickets issued before this time are refused
	}
}

func (VfolderTicket) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id", "vfolder_id", "write").Unique(), index.Fields("expires_at")}
}

func (VfolderTicket) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip()}
}

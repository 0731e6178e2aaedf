package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// ChatVote is which of the answers to a prompt its user found the best.
type ChatVote struct{ ent.Schema }

func (ChatVote) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Other}, created{}} }

func (ChatVote) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("winner", uuid.UUID{}).Optional().Nillable().Immutable(), // NULL: none was better
		field.JSON("answers", []uuid.UUID{}).Immutable(),
		field.Bool("blind").Immutable(),
		field.UUID("turn_id", uuid.UUID{}).Immutable(),
		field.UUID("chat_id", uuid.UUID{}).Immutable(),
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
	}
}

func (ChatVote) Edges() []ent.Edge {
	return []ent.Edge{edge.From("turn", ChatTurn.Type).Ref("ballots").Field("turn_id").Unique().Required().Immutable()}
}

func (ChatVote) Indexes() []ent.Index {
	return []ent.Index{index.Fields("turn_id").Unique(), index.Fields("domain_id")}
}

func (ChatVote) Annotations() []schema.Annotation { return []schema.Annotation{entgql.Skip()} }

package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/noticekind"
)

// Notice is an event for one person, or for the channels of the cluster. It has no edges: notices outlive their subject.
type Notice struct{ ent.Schema }

func (Notice) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.Notice}, created{}} }

func (Notice) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("kind").GoType(noticekind.Kind("")).Immutable(),
		field.Enum("severity").GoType(noticekind.Severity("")).Immutable(),
		field.JSON("parameters", map[string]string{}).Default(map[string]string{}),    // of its text
		field.Int("count").Default(1),                                                 // events that it stands for
		field.String("group_key").Default("").Immutable().Annotations(entgql.Skip()),  // events that can be in one notice, such as an array
		field.Bool("gathering").Default(false).Immutable().Annotations(entgql.Skip()), // later events of the group are counted in it
		field.Bool("in_page").Default(true).Immutable().Annotations(entgql.Skip()),    // the list of the page has it
		field.Bool("browser").Default(false).Immutable(),                              // the browser notifies the person
		field.Time("read_at").Optional().Nillable(),
		field.UUID("subject_id", uuid.UUID{}).Optional().Nillable().Immutable(),                         // the object that it is about
		field.UUID("user_id", uuid.UUID{}).Optional().Nillable().Immutable().Annotations(entgql.Skip()), // NULL: for the channels of the cluster
	}
}

func (Notice) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("user_id", "created_at"), index.Fields("created_at"),
		index.Fields("user_id").Annotations(entsql.IndexWhere("(read_at IS NULL) AND in_page")),
	}
}

func (Notice) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

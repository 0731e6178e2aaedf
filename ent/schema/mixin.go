// Package schema says what each entity is and who may read it. Rows are
// scoped by interceptors keyed on the viewer in the context; a query without
// a viewer is an error. Writing is the business of the manager's services.
package schema

import (
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/mixin"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// identified gives an entity its id.
type identified struct {
	mixin.Schema
	kind id.Kind
}

func (m identified) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", uuid.UUID{}).Default(id.Maker(m.kind)).Immutable(),
	}
}

// created gives an entity its time of creation, and lists ordered by it an
// index that fits.
type created struct{ mixin.Schema }

func (created) Fields() []ent.Field {
	return []ent.Field{
		field.Time("created_at").Default(now).Immutable().Annotations(entgql.OrderField("CREATED_AT")),
	}
}

// now is in microseconds and UTC, which is what PostgreSQL keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// owned gives an entity the three scopes it is charged to. They never change,
// so they are kept on every row that is filtered or summed by them. An entity whose
// rows are found by a scope has an index of its own.
type owned struct{ mixin.Schema }

func (owned) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
		field.UUID("project_id", uuid.UUID{}).Immutable(),
		field.UUID("owner_id", uuid.UUID{}).Immutable(),
	}
}

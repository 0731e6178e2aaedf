// Package schema defines the entities and who can read them. Interceptors filter rows by the
// viewer in the context; a query without a viewer is an error. Only the manager's services
// write.
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

// identified adds the id.
type identified struct {
	mixin.Schema
	kind id.Kind
}

func (m identified) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", uuid.UUID{}).Default(id.Maker(m.kind)).Immutable(),
	}
}

// created adds the time of creation, and an index for lists in that order.
type created struct{ mixin.Schema }

func (created) Fields() []ent.Field {
	return []ent.Field{
		field.Time("created_at").Default(now).Immutable().Annotations(entgql.OrderField("CREATED_AT")),
	}
}

// now returns the time in UTC with microseconds, the precision of PostgreSQL.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// owned adds the domain, project and user that an entity is charged to. They never change, so
// every table that is filtered or summed by them has a copy. An entity that is looked up by
// one of them has its own index.
type owned struct{ mixin.Schema }

func (owned) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("domain_id", uuid.UUID{}).Immutable(),
		field.UUID("project_id", uuid.UUID{}).Immutable(),
		field.UUID("owner_id", uuid.UUID{}).Immutable(),
	}
}

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

// ScanResult is what the latest scan of a registry found at one tag.
type ScanResult struct{ ent.Schema }

func (ScanResult) Mixin() []ent.Mixin { return []ent.Mixin{identified{kind: id.ScanResult}} }

func (ScanResult) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Immutable().Annotations(entgql.OrderField("NAME")), // repository:tag
		field.Enum("outcome").Values("new", "moved", "unchanged", "skipped", "failed", "gone"),
		field.String("digest").Default(""), // of the manifest or index; empty if it was not read
		field.String("message").Default(""),
		field.Time("scanned_at").Default(now),
		field.UUID("scan_id", uuid.UUID{}).Annotations(entgql.Skip()), // the task
		field.UUID("registry_id", uuid.UUID{}).Immutable(),
	}
}

func (ScanResult) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("registry", Registry.Type).Ref("scan_results").Field("registry_id").Unique().Required().Immutable(),
	}
}

func (ScanResult) Indexes() []ent.Index {
	return []ent.Index{index.Fields("registry_id", "name").Unique(), index.Fields("registry_id", "outcome")}
}

func (ScanResult) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

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

// ObjectStorage is an S3 bucket, or a prefix of one: a user's own, or a domain's for its
// members. Folders are imported from it and exported to it.
type ObjectStorage struct{ ent.Schema }

func (ObjectStorage) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ObjectStorage}, created{}}
}

func (ObjectStorage) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("endpoint").NotEmpty(), // scheme, host and port
		field.String("region").Default(""),
		field.String("bucket").NotEmpty(),
		field.String("prefix").Default(""), // "" or ends in a slash
		field.Enum("addressing").Values("path", "virtual").Default("path"),
		field.String("access_key_id").Default(""), // "": requests without credentials
		field.Bytes("secret_sealed").Optional().Sensitive().Annotations(entgql.Skip()),
		field.Bool("read_only").Default(false),
		field.Time("verified_at").Optional().Nillable().Annotations(entgql.Skip()), // when it last answered as S3 with these settings
		field.UUID("domain_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("owner_id", uuid.UUID{}).Optional().Nillable().Immutable(),
	}
}

func (ObjectStorage) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("owner", User.Type).Field("owner_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (ObjectStorage) Indexes() []ent.Index {
	return []ent.Index{index.Fields("owner_id", "name").Unique(), index.Fields("domain_id", "name").Unique()}
}

func (ObjectStorage) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entsql.Check("num_nonnulls(domain_id, owner_id) = 1"),
		entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder(),
	}
}

package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/report"
)

// Registry is a container registry that images come from.
type Registry struct{ ent.Schema }

func (Registry) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Registry}, created{}}
}

func (Registry) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.String("host").Unique().NotEmpty(),
		field.Bool("plain_http").Default(false),
		field.String("username").Default("").Annotations(entgql.Skip()),
		field.Bytes("password_sealed").Optional().Sensitive().Annotations(entgql.Skip()),
		field.JSON("mirrors", []report.Mirror{}).Default([]report.Mirror{}),             // asked before the registry, in this order
		field.Bytes("mirrors_sealed").Optional().Sensitive().Annotations(entgql.Skip()), // JSON: the logins of mirrors by their hosts
		field.String("proxy").Default(""),                                               // URL; empty: the proxy of the managers' environment
		field.Text("certificates").Default(""),                                          // in PEM, trusted in addition to those of the machine
		field.Strings("repositories").Default([]string{}),                               // names, and patterns with *; empty: all
		field.Int("scan_every").Default(0),                                              // in seconds; 0: never by itself
		field.Enum("tag_policy").Values("pinned", "follow").Default("follow"),
		field.Bool("lazy_start").Default(false),                                       // sessions start before their image is complete
		field.Text("signature_keys").Default(""),                                      // public keys in PEM; empty: images need no signature
		field.Bytes("webhook_hash").Optional().Sensitive().Annotations(entgql.Skip()), // of the secret; null: no webhook
		field.Int("sweep_every").Default(86400),                                       // in seconds; 0: never by itself; only for images of sessions
		field.JSON("retention", []report.RetentionRule{}).Default([]report.RetentionRule{}),
		field.JSON("last_sweep", &report.Sweep{}).Optional(),
		field.Time("sweep_due_at").Optional().Nillable().Annotations(entgql.Skip()),
		field.Time("scan_due_at").Optional().Nillable().Annotations(entgql.Skip()),
		field.Time("last_scanned_at").Optional().Nillable(),
	}
}

func (Registry) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("images", Image.Type).Annotations(entgql.Skip()),
		edge.To("scan_results", ScanResult.Type).Annotations(entsql.OnDelete(entsql.Cascade), entgql.Skip()),
		edge.To("projects", Project.Type), // that can use it; none: all
		edge.From("domains", Domain.Type).Ref("registries").Annotations(entgql.Skip()),
	}
}

func (Registry) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/resource"
)

// ResourcePolicy is a set of limits that is attached to domains, projects, users and keypairs.
type ResourcePolicy struct{ ent.Schema }

func (ResourcePolicy) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.ResourcePolicy}, created{}}
}

func (ResourcePolicy) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.JSON("total_slots", resource.Slots{}).Default(resource.Slots{}),
		field.Enum("unlisted_slots").Values("unlimited", "zero").Default("unlimited"), // limit of slots that total_slots does not list
		field.Int("max_sessions").Optional().Nillable(),
		field.Int("max_pending_sessions").Optional().Nillable(),
		field.JSON("max_pending_slots", resource.Slots{}).Default(resource.Slots{}),
		field.Int("max_containers_per_session").Optional().Nillable(),
		field.Int("max_priority").Optional().Nillable(),
		field.Int("max_session_lifetime").Optional().Nillable(), // seconds
		field.Int("idle_timeout").Optional().Nillable(),         // seconds
		field.Int("max_public_app_time").Optional().Nillable(),  // seconds; without it, no app can be public
		field.Int("max_vfolders").Optional().Nillable(),
		field.Int64("max_scope_bytes").Optional().Nillable(),
		field.Int64("max_disk_bytes").Optional().Nillable(),
		field.Int("max_logins").Optional().Nillable(),
		field.Int("max_customized_images").Optional().Nillable(), // own images of a user
		field.Int64("max_image_bytes").Optional().Nillable(),     // what they add to public images
		field.Int("max_deployments").Optional().Nillable(),
		// These limits are not enforced, so the API does not have them. The columns keep
		// values from versions that had them.
		field.Int("max_replicas").Optional().Nillable().Annotations(entgql.Skip()),
		field.Int("max_networks").Optional().Nillable().Annotations(entgql.Skip()),
		field.Int("max_ssh_sessions").Optional().Nillable().Annotations(entgql.Skip()),
	}
}

func (ResourcePolicy) Edges() []ent.Edge {
	return []ent.Edge{edge.To("attachments", PolicyAttachment.Type)}
}

func (ResourcePolicy) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

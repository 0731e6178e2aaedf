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

	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Session is one or more kernels that start and end together.
type Session struct{ ent.Schema }

func (Session) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{kind: id.Session}, created{}, owned{}}
}

func (Session) Fields() []ent.Field {
	return []ent.Field{
		field.Int("version").Default(1), // incremented by every change
		field.String("name").NotEmpty().MaxLen(64).Annotations(entgql.OrderField("NAME")),
		field.Enum("type").Values(lifecycle.SessionTypes...).Immutable(),
		field.Enum("status").GoType(lifecycle.Status("")).Default(string(lifecycle.Pending)),
		field.Enum("result").Values("undefined", "success", "failure").Default("undefined"),
		field.Int("exit_code").Optional().Nillable(),
		field.Int("priority").Default(10),
		field.JSON("slots", resource.Slots{}), // requested
		field.JSON("command", []string{}).Default([]string{}).Immutable(),
		// The values of the environment and the script are encrypted together; the row itself
		// has only the names of the variables. Rows of older versions have the values until
		// the leader has encrypted them.
		field.Bytes("secrets_sealed").Optional().Sensitive().Annotations(entgql.Skip()),
		field.String("bootstrap_script").Default("").Annotations(entgql.Skip()),
		field.JSON("environment", map[string]string{}).Default(map[string]string{}),
		field.JSON("apps", []appstate.App{}).Optional().Immutable().Annotations(entgql.Skip()), // requested; the values of their environments are in secrets_sealed
		field.Int64("shm_bytes").Default(0).Immutable().Annotations(entgql.Skip()),
		field.Int64("disk_bytes").Default(0).Immutable(), // limit for each container's writable layer; 0: created before the limit existed
		field.String("idempotency_key").Optional().Nillable().Immutable().Annotations(entgql.Skip()),
		field.Enum("termination_reason").Optional().Nillable().
			Values("user_requested", "completed", "failed", "out_of_memory", "disk_exceeded", "image_pull_failed", "start_failed",
				"deadline_exceeded", "agent_lost", "kernel_lost", "shutdown", "dependency_failed",
				"preempted", "drained", "idle", "lifetime", "pending_timeout", "budget"),
		field.String("status_message").Default(""),
		field.Time("starts_at").Optional().Nillable().Immutable(), // earliest start
		field.Bool("strict_agents").Default(false),                // only the requested agents may be used
		field.Int("lifetime").Optional().Nillable().Immutable(),   // seconds that it can run
		field.Bool("preemptible").Default(false).Immutable(),
		field.Bool("idle_exempt").Default(false),
		field.JSON("tags", []string{}).Default([]string{}),
		field.Bool("auto_mount").Default(true).Immutable().Annotations(entgql.Skip()), // as requested: folders with a dot are mounted without being named
		field.Bool("replaced").Default(false),                                         // a restart has taken its name
		field.UUID("restart_of_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.UUID("array_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.Int("array_index").Optional().Nillable().Immutable(),
		field.JSON("idle", &report.Idle{}).Optional(),                                               // the check that would end it next
		field.JSON("avoid_agents", []uuid.UUID{}).Default([]uuid.UUID{}).Annotations(entgql.Skip()), // agents on which it failed
		field.UUID("session_group_id", uuid.UUID{}).Optional().Nillable().Immutable(),
		field.Time("scheduled_at").Optional().Nillable(),
		field.Time("started_at").Optional().Nillable(),
		field.Time("terminated_at").Optional().Nillable(),
		field.Time("deadline_at").Optional().Nillable(),
		field.Time("retry_at").Optional().Nillable().Annotations(entgql.Skip()), // no retry before this time
		field.Int("attempt").Default(1).Annotations(entgql.Skip()),
		field.JSON("pending", &report.Pending{}).Optional(),
		field.UUID("keypair_id", uuid.UUID{}).Optional().Nillable().Immutable().Annotations(entgql.Skip()), // the keypair that requested the session
		field.UUID("resource_group_id", uuid.UUID{}),
		field.UUID("image_id", uuid.UUID{}).Immutable(),
	}
}

func (Session) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("domain", Domain.Type).Field("domain_id").Unique().Required().Immutable(),
		edge.To("project", Project.Type).Field("project_id").Unique().Required().Immutable(),
		edge.To("owner", User.Type).Field("owner_id").Unique().Required().Immutable(),
		edge.To("resource_group", ResourceGroup.Type).Field("resource_group_id").Unique().Required(),
		edge.To("image", Image.Type).Field("image_id").Unique().Required().Immutable(),
		edge.To("kernels", Kernel.Type),
		edge.To("mounts", SessionMount.Type),
		edge.To("networks", SessionNetwork.Type).Annotations(entsql.OnDelete(entsql.Cascade), entgql.Skip()),
		edge.To("history", SessionEvent.Type),
		edge.To("app_shares", AppShare.Type).Annotations(entsql.OnDelete(entsql.Cascade), entgql.Skip()),
		edge.To("app_ports", AppPort.Type).Annotations(entsql.OnDelete(entsql.Cascade), entgql.Skip()),
		edge.To("agents", Agent.Type), // requested agents
		edge.From("session_group", SessionGroup.Type).Ref("sessions").Field("session_group_id").Unique().Immutable(),
		edge.From("array", SessionArray.Type).Ref("sessions").Field("array_id").Unique().Immutable(),
		edge.To("restarts", Session.Type).Annotations(entsql.OnDelete(entsql.SetNull)).
			From("restart_of").Field("restart_of_id").Unique().Immutable(),
		edge.To("depends_on", SessionDependency.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("dependents", SessionDependency.Type).Annotations(entsql.OnDelete(entsql.SetNull)),
	}
}

func (Session) Indexes() []ent.Index {
	return []ent.Index{
		// A live session's name is unique for its user, except that a restart takes the name of
		// the session that it replaces, and an idempotency key creates one session. The first index is also used to list live sessions. No index has a column
		// that changes while a session lives, because a state change would then write to every
		// index of the table.
		index.Fields("owner_id", "name").Unique().Annotations(entsql.IndexWhere("(terminated_at IS NULL) AND (NOT replaced)")),
		index.Fields("owner_id", "idempotency_key").Unique().Annotations(entsql.IndexWhere("idempotency_key IS NOT NULL")),
		index.Fields("project_id"),
		index.Fields("domain_id"),
		index.Fields("created_at", "id").Annotations(entsql.DescColumns("created_at")),
		index.Fields("owner_id", "created_at"),
		index.Fields("array_id", "array_index").Annotations(entsql.IndexWhere("array_id IS NOT NULL")),
		index.Fields("restart_of_id").Annotations(entsql.IndexWhere("restart_of_id IS NOT NULL")),
		index.Fields("tags").Annotations(entsql.IndexType("GIN"), entsql.IndexWhere("tags <> '[]'::jsonb")),
		index.Fields("session_group_id").Annotations(entsql.IndexWhere("session_group_id IS NOT NULL")),
	}
}

func (Session) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.QueryField(), entgql.MultiOrder()}
}

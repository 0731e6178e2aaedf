package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/session/secrets"
	"github.com/berthhq/berth/manager/store"
)

// newSession and newKernel are rows to insert, by the names of their columns. The other
// columns have defaults in the database.
type newSession struct {
	ID              uuid.UUID         `json:"id"`
	Name            string            `json:"name"`
	Type            session.Type      `json:"type"`
	Priority        int               `json:"priority"`
	Slots           resource.Slots    `json:"slots"`
	Command         []string          `json:"command"`
	Environment     map[string]string `json:"environment"`
	Apps            []appstate.App    `json:"apps"`
	BootstrapScript string            `json:"bootstrap_script"`
	SecretsSealed   []byte            `json:"secrets_sealed"` // in base64
	ShmBytes        int64             `json:"shm_bytes"`
	DiskBytes       int64             `json:"disk_bytes"`
	IdempotencyKey  *string           `json:"idempotency_key"`
	StartsAt        *time.Time        `json:"starts_at"`
	StrictAgents    bool              `json:"strict_agents"`
	Lifetime        *int              `json:"lifetime"`
	Preemptible     bool              `json:"preemptible"`
	AutoMount       bool              `json:"auto_mount"`
	Tags            []string          `json:"tags"`
	RestartOfID     *uuid.UUID        `json:"restart_of_id"`
	ArrayID         *uuid.UUID        `json:"array_id"`
	ArrayIndex      *int              `json:"array_index"`
	KeypairID       *uuid.UUID        `json:"keypair_id"`
	DomainID        uuid.UUID         `json:"domain_id"`
	ProjectID       uuid.UUID         `json:"project_id"`
	OwnerID         uuid.UUID         `json:"owner_id"`
	GroupID         uuid.UUID         `json:"resource_group_id"`
	SessionGroupID  *uuid.UUID        `json:"session_group_id"`
	ImageID         uuid.UUID         `json:"image_id"`
}

type newKernel struct {
	ID        uuid.UUID   `json:"id"`
	SessionID uuid.UUID   `json:"session_id"`
	Role      kernel.Role `json:"role"`
	Index     int         `json:"index"`
	Hostname  string      `json:"hostname"`
}

// insertStatement inserts sessions, their kernels and the first entries of their history.
// Its text is the same for any number of sessions, so PostgreSQL parses it once for a
// connection. $1 is the time; $2, $3 and $4 are the entries, sessions and kernels.
const insertStatement = `WITH r AS (SELECT * FROM json_to_recordset($3::json) AS r(id uuid, name text, type text, priority bigint,
  slots jsonb, command jsonb, environment jsonb, apps jsonb, bootstrap_script text, secrets_sealed text, shm_bytes bigint, disk_bytes bigint,
  idempotency_key text, starts_at timestamptz, strict_agents boolean, lifetime bigint, preemptible boolean, keypair_id uuid,
  auto_mount boolean, tags jsonb, restart_of_id uuid, array_id uuid, array_index bigint,
  domain_id uuid, project_id uuid, owner_id uuid, resource_group_id uuid, session_group_id uuid, image_id uuid)),
s AS (INSERT INTO sessions (id, created_at, name, type, priority, slots, command, environment, apps, bootstrap_script, secrets_sealed,
  shm_bytes, disk_bytes, idempotency_key, starts_at, strict_agents, lifetime, preemptible, keypair_id,
  auto_mount, tags, restart_of_id, array_id, array_index,
  domain_id, project_id, owner_id, resource_group_id, session_group_id, image_id, avoid_agents)
  SELECT r.id, $1::timestamptz, r.name, r.type, r.priority, r.slots, r.command, r.environment, r.apps, r.bootstrap_script, decode(r.secrets_sealed, 'base64'),
  r.shm_bytes, r.disk_bytes, r.idempotency_key, r.starts_at, r.strict_agents, r.lifetime, r.preemptible, r.keypair_id,
  r.auto_mount, r.tags, r.restart_of_id, r.array_id, r.array_index,
  r.domain_id, r.project_id, r.owner_id, r.resource_group_id, r.session_group_id, r.image_id, '[]' FROM r),
k AS (INSERT INTO kernels (id, created_at, session_id, role, index, hostname, slots, domain_id, project_id, owner_id)
  SELECT k.id, $1::timestamptz, r.id, k.role, k.index, k.hostname, r.slots, r.domain_id, r.project_id, r.owner_id
  FROM json_to_recordset($4::json) AS k(id uuid, session_id uuid, role text, index bigint, hostname text) JOIN r ON r.id = k.session_id)
` + history.Insert

// insertSessions runs insertStatement for specs, and returns the ids of the sessions.
func (s database) insertSessions(ctx context.Context, tx *ent.Tx, specs []*sessionSpec) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, len(specs))
	sessions := make([]newSession, len(specs))
	lines := make([]history.Entry, len(specs))
	var kernels []newKernel
	for i, spec := range specs {
		row, err := s.newSession(spec)
		if err != nil {
			return nil, err
		}
		ids[i], sessions[i] = row.ID, row
		lines[i] = history.Entry{Session: row.ID, Phase: "schedule", To: lifecycle.Pending, Result: sessionevent.ResultInfo, Attempt: 1, Message: spec.queued()}
		for k := range spec.kernels {
			role, host := kernelName(k)
			kernels = append(kernels, newKernel{id.New(id.Kernel), row.ID, role, k, host})
		}
	}
	events, err := history.Rows(lines)
	if err != nil {
		return nil, err
	}
	rows, err := json.Marshal(sessions)
	if err != nil {
		return nil, fmt.Errorf("store sessions: %w", err)
	}
	theirs, err := json.Marshal(kernels)
	if err != nil {
		return nil, fmt.Errorf("store kernels: %w", err)
	}
	if err := store.Exactly(ctx, tx, len(specs), insertStatement, clock.Now(), events, string(rows), string(theirs)); err != nil {
		return nil, fmt.Errorf("store sessions: %w", err)
	}
	return ids, nil
}

// kernelName returns the role and the host name of a session's kernel.
func kernelName(index int) (role kernel.Role, host string) {
	if index == 0 {
		return kernel.RoleMain, "main"
	}
	return kernel.RoleSub, fmt.Sprintf("sub%d", index)
}

// newSession returns the row of a spec.
func (s database) newSession(spec *sessionSpec) (newSession, error) {
	row := newSession{
		ID: id.New(id.Session), Name: spec.name, Type: spec.kind, Priority: spec.priority, Slots: spec.slots, Command: spec.command,
		Environment: spec.environment, Apps: spec.apps, BootstrapScript: spec.bootstrap, ShmBytes: spec.shmBytes, DiskBytes: spec.diskBytes, IdempotencyKey: spec.key,
		StartsAt: spec.startsAt, StrictAgents: spec.strict, Lifetime: spec.lifetime, Preemptible: spec.preemptible, KeypairID: spec.keypair,
		DomainID: spec.domain, ProjectID: spec.project, OwnerID: spec.owner, GroupID: spec.group, SessionGroupID: spec.together, ImageID: spec.image.ID,
		AutoMount: spec.autoMount, Tags: spec.tags,
	}
	if spec.restarts != nil {
		row.RestartOfID = &spec.restarts.ID
	}
	if m := spec.member; m != nil {
		row.ArrayID, row.ArrayIndex = &m.array, &m.index
	}
	if s.Keys == nil {
		return row, nil
	}
	sealed, names, err := secrets.New(spec.environment, spec.bootstrap, spec.apps, spec.kernels).Seal(s.Keys)
	row.SecretsSealed, row.Environment, row.BootstrapScript = sealed, names, ""
	row.Apps = secrets.WithoutValues(spec.apps)
	return row, err
}

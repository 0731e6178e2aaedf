package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/store"
)

// newSession and newKernel are rows to insert, by the names of their columns. What is
// not here has its default in the database.
type newSession struct {
	ID              uuid.UUID         `json:"id"`
	Name            string            `json:"name"`
	Type            session.Type      `json:"type"`
	Priority        int               `json:"priority"`
	Slots           resource.Slots    `json:"slots"`
	Command         []string          `json:"command"`
	Environment     map[string]string `json:"environment"`
	BootstrapScript string            `json:"bootstrap_script"`
	SecretsSealed   []byte            `json:"secrets_sealed"` // in base64
	ShmBytes        int64             `json:"shm_bytes"`
	DiskBytes       int64             `json:"disk_bytes"`
	IdempotencyKey  *string           `json:"idempotency_key"`
	StartsAt        *time.Time        `json:"starts_at"`
	StrictAgents    bool              `json:"strict_agents"`
	Lifetime        *int              `json:"lifetime"`
	Preemptible     bool              `json:"preemptible"`
	KeypairID       *uuid.UUID        `json:"keypair_id"`
	DomainID        uuid.UUID         `json:"domain_id"`
	ProjectID       uuid.UUID         `json:"project_id"`
	OwnerID         uuid.UUID         `json:"owner_id"`
	GroupID         uuid.UUID         `json:"resource_group_id"`
	ImageID         uuid.UUID         `json:"image_id"`
}

type newKernel struct {
	ID        uuid.UUID   `json:"id"`
	SessionID uuid.UUID   `json:"session_id"`
	Role      kernel.Role `json:"role"`
	Index     int         `json:"index"`
	Hostname  string      `json:"hostname"`
}

// insertStatement has the same text for any number of sessions, so that PostgreSQL
// parses it once for a connection. $1 are sessions, $2 kernels, $3 is the time.
const insertStatement = `WITH s AS (SELECT * FROM json_to_recordset($1::json) AS s(id uuid, name text, type text, priority bigint,
  slots jsonb, command jsonb, environment jsonb, bootstrap_script text, secrets_sealed text, shm_bytes bigint, disk_bytes bigint,
  idempotency_key text, starts_at timestamptz, strict_agents boolean, lifetime bigint, preemptible boolean, keypair_id uuid,
  domain_id uuid, project_id uuid, owner_id uuid, resource_group_id uuid, image_id uuid)),
inserted AS (INSERT INTO sessions (id, created_at, name, type, priority, slots, command, environment, bootstrap_script, secrets_sealed,
  shm_bytes, disk_bytes, idempotency_key, starts_at, strict_agents, lifetime, preemptible, keypair_id,
  domain_id, project_id, owner_id, resource_group_id, image_id, avoid_agents)
  SELECT s.id, $3::timestamptz, s.name, s.type, s.priority, s.slots, s.command, s.environment, s.bootstrap_script, decode(s.secrets_sealed, 'base64'),
  s.shm_bytes, s.disk_bytes, s.idempotency_key, s.starts_at, s.strict_agents, s.lifetime, s.preemptible, s.keypair_id,
  s.domain_id, s.project_id, s.owner_id, s.resource_group_id, s.image_id, '[]' FROM s)
INSERT INTO kernels (id, created_at, session_id, role, index, hostname, slots, domain_id, project_id, owner_id)
SELECT k.id, $3::timestamptz, s.id, k.role, k.index, k.hostname, s.slots, s.domain_id, s.project_id, s.owner_id
FROM json_to_recordset($2::json) AS k(id uuid, session_id uuid, role text, index bigint, hostname text) JOIN s ON s.id = k.session_id`

// insert stores wishes that hold nothing, their kernels and their first entries of
// history, and returns the sessions in the same order. Its statements do not grow in
// number with the wishes.
func (s *Service) insert(ctx context.Context, tx *ent.Tx, wishes []*wish) ([]*ent.Session, error) {
	ids := make([]uuid.UUID, len(wishes))
	sessions := make([]newSession, len(wishes))
	history := make([]entry, len(wishes))
	var kernels []newKernel
	for i, w := range wishes {
		row, err := s.newSession(w)
		if err != nil {
			return nil, err
		}
		ids[i], sessions[i], history[i] = row.ID, row, queued(row.ID)
		for k := range w.kernels {
			role, host := kernelName(k)
			kernels = append(kernels, newKernel{id.New(id.Kernel), row.ID, role, k, host})
		}
	}
	rows, err := json.Marshal(sessions)
	if err != nil {
		return nil, fmt.Errorf("store sessions: %w", err)
	}
	theirs, err := json.Marshal(kernels)
	if err != nil {
		return nil, fmt.Errorf("store kernels: %w", err)
	}
	if err := exactly(ctx, tx, len(kernels), insertStatement, string(rows), string(theirs), clock.Now()); err != nil {
		return nil, fmt.Errorf("store sessions: %w", err)
	}
	if err := record(ctx, tx, history...); err != nil {
		return nil, err
	}
	made, err := tx.Session.Query().Where(func(q *sql.Selector) { q.Where(store.In(q.C(session.FieldID), ids)) }).
		Order(session.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	return inOrder(made, ids)
}

// newSession is the row of a wish.
func (s *Service) newSession(w *wish) (newSession, error) {
	row := newSession{
		ID: id.New(id.Session), Name: w.name, Type: w.kind, Priority: w.priority, Slots: w.slots, Command: w.command,
		Environment: w.environment, BootstrapScript: w.bootstrap, ShmBytes: w.shmBytes, DiskBytes: w.diskBytes, IdempotencyKey: w.key,
		StartsAt: w.startsAt, StrictAgents: w.strict, Lifetime: w.lifetime, Preemptible: w.preemptible, KeypairID: w.keypair,
		DomainID: w.domain, ProjectID: w.project, OwnerID: w.owner, GroupID: w.group, ImageID: w.image.ID,
	}
	if s.Keys == nil {
		return row, nil
	}
	sealed, names, err := s.seal(secrets{w.environment, w.bootstrap})
	row.SecretsSealed, row.Environment, row.BootstrapScript = sealed, names, ""
	return row, err
}

// inOrder returns the sessions in the order of their ids.
func inOrder(made []*ent.Session, ids []uuid.UUID) ([]*ent.Session, error) {
	byID := make(map[uuid.UUID]*ent.Session, len(made))
	for _, one := range made {
		byID[one.ID] = one
	}
	out := make([]*ent.Session, len(ids))
	for i, id := range ids {
		if out[i] = byID[id]; out[i] == nil {
			return nil, fmt.Errorf("session %s was not stored", id)
		}
	}
	return out, nil
}

package session

import (
	"context"
	"encoding/json"
	"fmt"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/store"
)

// Place is where the kernels of one waiting session go.
type Place struct {
	Session *ent.Session
	Kernels []Placement
	Network *Network // where they go to several agents
}

// Placement is where one kernel goes and what it holds there.
type Placement struct {
	Kernel uuid.UUID
	Agent  uuid.UUID
	Holds  []Hold
}

// Hold is an amount of a slot on one device.
type Hold struct {
	Device uuid.UUID
	Slot   string
	Amount int64
}

// LockPending returns those of the sessions that wait still, and keeps them so
// until the transaction ends. Of each it has what Schedule needs, and what its
// owner may change while it waits.
func LockPending(ctx context.Context, tx *ent.Tx, ids []uuid.UUID) ([]*ent.Session, error) {
	q := tx.Session.Query().Where(session.StatusEQ(lifecycle.Pending), func(s *sql.Selector) {
		s.Where(store.In(s.C(session.FieldID), ids))
	}).Order(session.ByID()).ForUpdate()
	q.Select(session.FieldID, session.FieldStatus, session.FieldAttempt, session.FieldDomainID, session.FieldProjectID, session.FieldOwnerID,
		session.FieldSlots, session.FieldResourceGroupID, session.FieldStrictAgents)
	held, err := q.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock waiting sessions: %w", err)
	}
	return held, nil
}

// Schedule moves waiting sessions to scheduled and gives their kernels what
// they hold, in the caller's transaction. Its statements do not grow in number
// with the sessions: this is where many are placed at once.
func Schedule(ctx context.Context, tx *ent.Tx, places []Place) error {
	var sessions, kernels, agents []string
	var a allocations
	history := make([]entry, 0, len(places))
	pending := lifecycle.Pending
	for _, p := range places {
		sessions = append(sessions, p.Session.ID.String())
		history = append(history, entry{session: p.Session.ID, phase: "schedule", from: &pending, to: lifecycle.Scheduled,
			result: sessionevent.ResultSuccess, attempt: p.Session.Attempt, message: placed})
		for _, k := range p.Kernels {
			kernels, agents = append(kernels, k.Kernel.String()), append(agents, k.Agent.String())
			for _, h := range k.Holds {
				if err := a.add(p.Session, k, h); err != nil {
					return err
				}
			}
		}
	}
	now := clock.Now()
	// One statement: the sessions are held by the caller, so what it does not
	// change was changed by no one else.
	if err := connect(ctx, tx, places); err != nil {
		return err
	}
	row, err := tx.QueryContext(ctx, `WITH k AS (UPDATE kernels k SET agent_id = w.agent, launch_epoch = k.launch_epoch + 1, status = $3
  FROM unnest($1::text[]::uuid[], $2::text[]::uuid[]) AS w(id, agent) WHERE k.id = w.id AND k.id = ANY ($1::text[]::uuid[]) AND k.terminated_at IS NULL RETURNING 1),
a AS (INSERT INTO allocations
  (id, created_at, domain_id, project_id, owner_id, session_id, kernel_id, agent_id, device_id, slot, amount)
  SELECT w.id, $5::timestamptz, w.domain, w.project, w.owner, w.session, w.kernel, w.agent, w.device, w.slot, w.amount
  FROM unnest($4::text[]::uuid[], $6::text[]::uuid[], $7::text[]::uuid[], $8::text[]::uuid[], $9::text[]::uuid[], $10::text[]::uuid[],
    $11::text[]::uuid[], $12::text[]::uuid[], $13::text[], $14::bigint[])
    AS w(id, domain, project, owner, session, kernel, agent, device, slot, amount) RETURNING 1),
s AS (UPDATE sessions SET status = $3, version = version + 1, status_message = $15,
  deadline_at = $16, scheduled_at = $5::timestamptz, pending = NULL, retry_at = NULL
  WHERE id = ANY ($17::text[]::uuid[]) AND status = $18 RETURNING 1)
SELECT (SELECT count(*) FROM k), (SELECT count(*) FROM a), (SELECT count(*) FROM s)`,
		kernels, agents, string(lifecycle.Scheduled),
		a.ids, now, a.domains, a.projects, a.owners, a.sessions, a.kernels, a.agents, a.devices, a.slots, a.amounts,
		placed, now.Add(lifecycle.Deadline(lifecycle.Scheduled)), sessions, string(lifecycle.Pending))
	if err != nil {
		return fmt.Errorf("place sessions: %w", err)
	}
	defer row.Close()
	var moved, held, left int
	for row.Next() {
		if err := row.Scan(&moved, &held, &left); err != nil {
			return fmt.Errorf("place sessions: %w", err)
		}
	}
	if err := row.Err(); err != nil {
		return fmt.Errorf("place sessions: %w", err)
	}
	if moved != len(kernels) || held != len(a.ids) || left != len(sessions) {
		return fmt.Errorf("place %d of %d kernels, %d of %d sessions: %w", moved, len(kernels), left, len(sessions), errdefs.ErrAborted)
	}
	return record(ctx, tx, history...)
}

const placed = "placed"

// allocations are the columns of the rows to make.
type allocations struct {
	ids, domains, projects, owners, sessions, kernels, agents, devices, slots []string
	amounts                                                                   []int64
}

func (a *allocations) add(s *ent.Session, k Placement, h Hold) error {
	if h.Amount <= 0 {
		return fmt.Errorf("session %s would hold %d %s: %w", s.ID, h.Amount, h.Slot, errdefs.ErrInvalidArgument)
	}
	for _, one := range []struct {
		to    *[]string
		value uuid.UUID
	}{
		{&a.ids, id.New(id.Allocation)}, {&a.domains, s.DomainID}, {&a.projects, s.ProjectID}, {&a.owners, s.OwnerID},
		{&a.sessions, s.ID}, {&a.kernels, k.Kernel}, {&a.agents, k.Agent}, {&a.devices, h.Device},
	} {
		*one.to = append(*one.to, one.value.String())
	}
	a.slots, a.amounts = append(a.slots, h.Slot), append(a.amounts, h.Amount)
	return nil
}

// exactly fails with Aborted unless the statement changes n rows.
func exactly(ctx context.Context, tx *ent.Tx, n int, query string, args ...any) error {
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	switch changed, err := res.RowsAffected(); {
	case err != nil:
		return err
	case changed != int64(n):
		return fmt.Errorf("%d of %d rows: %w", changed, n, errdefs.ErrAborted)
	}
	return nil
}

// Wait is why a session waits, as it was decided now.
type Wait struct {
	Session uuid.UUID
	Attempt int
	Why     *report.Pending
	News    bool // of another kind than before: an entry of the history
}

// Explain stores why sessions wait, in the caller's transaction, and leaves
// out those that moved on.
func Explain(ctx context.Context, tx *ent.Tx, waits []Wait) error {
	byID := make(map[uuid.UUID]Wait, len(waits))
	var ids, whys, summaries []string
	for _, w := range waits {
		why, err := json.Marshal(w.Why)
		if err != nil {
			return fmt.Errorf("explain session %s: %w", w.Session, err)
		}
		byID[w.Session] = w
		ids, whys, summaries = append(ids, w.Session.String()), append(whys, string(why)), append(summaries, w.Why.Summary)
	}
	// They are held in the order in which LockPending holds them.
	rows, err := tx.QueryContext(ctx, `WITH held AS (SELECT id FROM sessions WHERE id = ANY ($1::text[]::uuid[]) AND status = $4 ORDER BY id FOR UPDATE)
UPDATE sessions s SET pending = w.why, status_message = w.summary, version = s.version + 1
FROM held, unnest($1::text[]::uuid[], $2::text[]::jsonb[], $3::text[]) AS w(id, why, summary) WHERE s.id = held.id AND w.id = held.id RETURNING s.id`,
		ids, whys, summaries, string(lifecycle.Pending))
	if err != nil {
		return fmt.Errorf("explain sessions: %w", err)
	}
	defer rows.Close()
	var history []entry
	pending := lifecycle.Pending
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("explain sessions: %w", err)
		}
		if w := byID[id]; w.News {
			history = append(history, entry{session: id, phase: "schedule", from: &pending, to: pending,
				result: sessionevent.ResultRetry, attempt: w.Attempt, code: "waiting", message: w.Why.Summary})
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("explain sessions: %w", err)
	}
	rows.Close()
	return record(ctx, tx, history...)
}

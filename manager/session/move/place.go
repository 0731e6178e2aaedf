package move

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/overlay"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/store"
)

// Place is the placement of one pending session.
type Place struct {
	Session *ent.Session
	Kernels []Placement
	Network *Network // of a session over several agents
}

// Placement is the agent of one kernel, with what is allocated to it there.
type Placement struct {
	Kernel      uuid.UUID
	Agent       uuid.UUID
	Allocations []Allocation
}

// Allocation is an amount of a slot on one device.
type Allocation struct {
	Device uuid.UUID
	Slot   string
	Amount int64
}

// LockPending returns those of the sessions that are still pending, and locks them until
// the transaction ends. It reads the columns that Schedule needs and those that the owner
// can change while the session is pending.
func LockPending(ctx context.Context, tx *ent.Tx, ids []uuid.UUID) ([]*ent.Session, error) {
	q := tx.Session.Query().Where(session.StatusEQ(lifecycle.Pending), func(s *sql.Selector) {
		s.Where(store.In(s.C(session.FieldID), ids))
	}).Order(session.ByID()).ForUpdate()
	q.Select(session.FieldID, session.FieldStatus, session.FieldAttempt, session.FieldDomainID, session.FieldProjectID, session.FieldOwnerID,
		session.FieldSlots, session.FieldResourceGroupID, session.FieldStrictAgents)
	locked, err := q.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock pending sessions: %w", err)
	}
	return locked, nil
}

// Schedule moves pending sessions to scheduled, and stores the agents and allocations of
// their kernels, in the caller's transaction. The number of its statements does not grow
// with the sessions.
func Schedule(ctx context.Context, tx *ent.Tx, places []Place) error {
	if err := connect(ctx, tx, places); err != nil {
		return err
	}
	sessions := make([]*ent.Session, len(places))
	for i, p := range places {
		sessions[i] = p.Session
	}
	return Make(ctx, tx, Move{To: lifecycle.Scheduled, Phase: "schedule", Result: sessionevent.ResultSuccess, Message: "placed", Places: places}, sessions...)
}

// The parts of a move to scheduled, with the arguments of placeArgs. A kernel that has
// ended, which no session that is pending has, leaves the history empty, and so the move
// fails.
const (
	placeKernels = `k AS (UPDATE kernels SET agent_id = w.agent, launch_epoch = kernels.launch_epoch + 1, status = $6::text
  FROM unnest($16::text[]::uuid[], $17::text[]::uuid[]) AS w(id, agent)
  WHERE kernels.id = w.id AND kernels.id = ANY ($16::text[]::uuid[]) AND kernels.terminated_at IS NULL RETURNING 1),
`
	placeAllocations = `a AS (INSERT INTO allocations (id, created_at, domain_id, project_id, owner_id, session_id, kernel_id, agent_id, device_id, slot, amount)
  SELECT w.id, $1::timestamptz, w.domain, w.project, w.owner, w.session, w.kernel, w.agent, w.device, w.slot, w.amount
  FROM unnest($18::text[]::uuid[], $19::text[]::uuid[], $20::text[]::uuid[], $21::text[]::uuid[], $22::text[]::uuid[], $23::text[]::uuid[],
    $24::text[]::uuid[], $25::text[]::uuid[], $26::text[], $27::bigint[])
    AS w(id, domain, project, owner, session, kernel, agent, device, slot, amount))
`
	placeAll = ` WHERE (SELECT count(*) FROM k) = COALESCE(cardinality($16::text[]), 0)`
)

// placeArgs returns the columns of the rows of places.
func placeArgs(places []Place) ([]any, error) {
	var kernels, agents []string
	var a allocations
	for _, p := range places {
		for _, k := range p.Kernels {
			kernels, agents = append(kernels, k.Kernel.String()), append(agents, k.Agent.String())
			for _, one := range k.Allocations {
				if err := a.add(p.Session, k, one); err != nil {
					return nil, err
				}
			}
		}
	}
	return []any{kernels, agents, a.ids, a.domains, a.projects, a.owners, a.sessions, a.kernels, a.agents, a.devices, a.slots, a.amounts}, nil
}

// allocations are the columns of the rows to insert.
type allocations struct {
	ids, domains, projects, owners, sessions, kernels, agents, devices, slots []string
	amounts                                                                   []int64
}

func (a *allocations) add(s *ent.Session, k Placement, one Allocation) error {
	if one.Amount <= 0 {
		return fmt.Errorf("session %s would get %d %s: %w", s.ID, one.Amount, one.Slot, errdefs.ErrInvalidArgument)
	}
	for _, c := range []struct {
		to    *[]string
		value uuid.UUID
	}{
		{&a.ids, id.New(id.Allocation)}, {&a.domains, s.DomainID}, {&a.projects, s.ProjectID}, {&a.owners, s.OwnerID},
		{&a.sessions, s.ID}, {&a.kernels, k.Kernel}, {&a.agents, k.Agent}, {&a.devices, one.Device},
	} {
		*c.to = append(*c.to, c.value.String())
	}
	a.slots, a.amounts = append(a.slots, one.Slot), append(a.amounts, one.Amount)
	return nil
}

// Wait is the reason why a session is pending.
type Wait struct {
	Session uuid.UUID
	Attempt int
	Why     *report.Pending
	News    bool // of another kind than before: it gets an entry in the history
}

// waiting begins the code of entries about why a session waits. Older versions wrote the word alone.
const waiting = "waiting"

// WaitCode returns the code of an entry of the history about a stage at which a session waits.
func WaitCode(stage string) string { return waiting + ":" + stage }

// WaitStage returns the stage of the code of an entry; it is empty in entries of older versions. It reports false if the entry is
// not about waiting.
func WaitStage(code string) (stage string, ok bool) {
	rest, ok := strings.CutPrefix(code, waiting)
	return strings.TrimPrefix(rest, ":"), ok
}

// Explain stores why sessions are pending, in the caller's transaction. It leaves out
// sessions that are no longer pending.
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
	// The rows are locked in the order in which LockPending locks them.
	rows, err := tx.QueryContext(ctx, `WITH locked AS (SELECT id FROM sessions WHERE id = ANY ($1::text[]::uuid[]) AND status = $4 ORDER BY id FOR UPDATE)
UPDATE sessions s SET pending = w.why, status_message = w.summary, version = s.version + 1
FROM locked, unnest($1::text[]::uuid[], $2::text[]::jsonb[], $3::text[]) AS w(id, why, summary) WHERE s.id = locked.id AND w.id = locked.id RETURNING s.id`,
		ids, whys, summaries, string(lifecycle.Pending))
	if err != nil {
		return fmt.Errorf("explain sessions: %w", err)
	}
	defer rows.Close()
	var lines []history.Entry
	pending := lifecycle.Pending
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("explain sessions: %w", err)
		}
		if w := byID[id]; w.News {
			lines = append(lines, history.Entry{Session: id, Phase: "schedule", From: &pending, To: pending,
				Result: sessionevent.ResultRetry, Attempt: w.Attempt, Code: WaitCode(w.Why.Stage), Message: w.Why.Summary})
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("explain sessions: %w", err)
	}
	rows.Close()
	return history.Record(ctx, tx, lines...)
}

// Network is what joins the kernels of a session over several agents.
type Network struct {
	overlay.Part
	MTU int
}

// connect stores the networks of sessions that are being placed.
func connect(ctx context.Context, tx *ent.Tx, places []Place) error {
	var rows []*ent.SessionNetworkCreate
	for _, p := range places {
		if p.Network != nil {
			rows = append(rows, tx.SessionNetwork.Create().SetSessionID(p.Session.ID).
				SetVni(p.Network.VNI).SetSubnet(p.Network.Subnet.String()).SetMtu(p.Network.MTU))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := tx.SessionNetwork.CreateBulk(rows...).Exec(ctx); err != nil {
		return fmt.Errorf("store networks of sessions: %w", err)
	}
	return nil
}

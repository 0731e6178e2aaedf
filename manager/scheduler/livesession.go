package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/store"
)

// live is a session that waits or has allocations.
type live struct {
	status  lifecycle.Status
	attempt int
	request plan.Request    // with kernels only while it waits
	reason  *report.Pending // the pending reason in its row
	allocs  []alloc
	terms
	array seat
}

// seat is the place of a session in its array; zero without an array.
type seat struct {
	array uuid.UUID
	index int
	name  string // of the array, while the session waits
	most  int    // members that run at once, while the session waits; 0: any number
}

// alloc is a live allocation.
type alloc struct {
	agent, device uuid.UUID
	slot          string
	amount        int64
	since         time.Time
}

// requestColumns is the part of a waiting session's request that is in other tables, as JSON, so
// that one statement reads all of it. Kernels are read by a separate statement: their table is as
// large as that of the sessions, and with a query plan from the time when the table was small,
// PostgreSQL would scan all of it for each session.
const requestColumns = `CASE WHEN sessions.status = 'pending' THEN json_build_object(
'architecture', (SELECT i.architecture FROM images i WHERE i.id = sessions.image_id),
'image', (SELECT i.reference FROM images i WHERE i.id = sessions.image_id),
'agents', (SELECT json_agg(a.agent_id ORDER BY a.agent_id) FROM session_agents a WHERE a.session_id = sessions.id),
'after', (SELECT json_agg(d.name ORDER BY d.id) FROM session_dependencies d WHERE d.session_id = sessions.id AND NOT d.satisfied),
'replaces', (SELECT o.name FROM sessions o WHERE o.id = sessions.restart_of_id AND o.terminated_at IS NULL),
'array', (SELECT json_build_object('Name', x.name, 'Most', x.max_running) FROM session_arrays x WHERE x.id = sessions.array_id AND x.max_running IS NOT NULL),
'together', (SELECT json_build_object('ID', g.id, 'Spread', g.placement = 'spread', 'Strict', g.strict) FROM session_groups g WHERE g.id = sessions.session_group_id),
'volumes', (SELECT json_agg(v.name ORDER BY m.id) FROM session_mounts m JOIN vfolders f ON f.id = m.vfolder_id
  JOIN quota_scopes q ON q.id = f.quota_scope_id JOIN volumes v ON v.id = q.volume_id WHERE m.session_id = sessions.id)
)::text END`

type requestRow struct {
	Architecture string
	Image        string
	Agents       []uuid.UUID
	After        []string
	Volumes      []string
	Replaces     string
	Together     *plan.Together
	Array        struct {
		Name string
		Most int
	}
}

// readLive reads the live sessions among ids, or all of them, with their allocations. It
// does not read allocations of sessions that wait and are known to have none.
func (s *Scheduler) readLive(ctx context.Context, ids []uuid.UUID, known map[uuid.UUID]*live) (map[uuid.UUID]*live, error) {
	q := s.client.Session.Query().Where(session.TerminatedAtIsNil())
	if ids != nil {
		q.Where(func(s *sql.Selector) { s.Where(store.In(s.C(session.FieldID), ids)) })
	}
	q.Select(session.FieldID, session.FieldStatus, session.FieldAttempt, session.FieldOwnerID, session.FieldProjectID, session.FieldDomainID,
		session.FieldResourceGroupID, session.FieldKeypairID, session.FieldPriority, session.FieldCreatedAt, session.FieldRetryAt,
		session.FieldStartsAt, session.FieldStrictAgents, session.FieldAvoidAgents, session.FieldPending,
		session.FieldStartedAt, session.FieldLifetime, session.FieldPreemptible, session.FieldSessionGroupID,
		session.FieldArrayID, session.FieldArrayIndex)
	q.Modify(func(s *sql.Selector) { s.AppendSelectExprAs(sql.Expr(requestColumns), "asks") })
	rows, err := q.All(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[uuid.UUID]*live, len(rows))
	for _, row := range rows {
		l := &live{status: row.Status, attempt: row.Attempt, reason: row.Pending, terms: rowTerms(row)}
		if err := l.readRequest(row); err != nil {
			return nil, fmt.Errorf("session %s: %w", row.ID, err)
		}
		all[row.ID] = l
	}
	if err := s.readKernels(ctx, ids, all); err != nil {
		return nil, err
	}
	if ids != nil {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool {
			return all[id] != nil && all[id].status == lifecycle.Pending && (known[id] == nil || len(known[id].allocs) == 0)
		})
	}
	return all, s.readAllocations(ctx, ids, all)
}

func rowTerms(row *ent.Session) terms {
	t := terms{lifetime: row.Lifetime, preemptible: row.Preemptible}
	if row.StartedAt != nil {
		t.started = *row.StartedAt
	}
	if row.SessionGroupID != nil {
		t.together = *row.SessionGroupID
	}
	return t
}

// readRequest sets the request of a session, and its place in an array.
func (l *live) readRequest(row *ent.Session) error {
	if row.ArrayID != nil && row.ArrayIndex != nil {
		l.array = seat{array: *row.ArrayID, index: *row.ArrayIndex}
	}
	l.request = plan.Request{
		SessionID: row.ID, Owner: row.OwnerID, Project: row.ProjectID, Domain: row.DomainID, Group: row.ResourceGroupID,
		Priority: row.Priority, Created: row.CreatedAt, Strict: row.StrictAgents, AvoidAgents: row.AvoidAgents,
	}
	r := &l.request
	if row.KeypairID != nil {
		r.Keypair = *row.KeypairID
	}
	if row.RetryAt != nil {
		r.RetryAt = *row.RetryAt
	}
	if row.StartsAt != nil {
		r.StartsAt = *row.StartsAt
	}
	if row.Pending != nil {
		r.Room = row.Pending.Room
	}
	value, err := row.Value("asks")
	if err != nil || value == nil {
		return err
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("the request is a %T", value)
	}
	var a requestRow
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return fmt.Errorf("decode the request: %w", err)
	}
	r.Image, r.Architecture, r.Agents, r.After, r.Volumes, r.Together = a.Image, a.Architecture, a.Agents, a.After, a.Volumes, a.Together
	r.Replaces = a.Replaces
	l.array.name, l.array.most = a.Array.Name, a.Array.Most
	return nil
}

// readKernels adds the kernels of the waiting sessions among ids, or of all that wait.
func (s *Scheduler) readKernels(ctx context.Context, ids []uuid.UUID, to map[uuid.UUID]*live) error {
	q := s.client.Kernel.Query().Where(kernel.StatusEQ(lifecycle.Pending), kernel.TerminatedAtIsNil())
	if ids != nil {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { return to[id] == nil || to[id].status != lifecycle.Pending })
		if len(ids) == 0 {
			return nil
		}
		q.Where(func(s *sql.Selector) { s.Where(store.In(s.C(kernel.FieldSessionID), ids)) })
	}
	q.Select(kernel.FieldID, kernel.FieldSessionID, kernel.FieldIndex, kernel.FieldSlots)
	rows, err := q.All(ctx)
	if err != nil {
		return fmt.Errorf("read kernels: %w", err)
	}
	slices.SortFunc(rows, func(a, b *ent.Kernel) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), slices.Compare(a.ID[:], b.ID[:]))
	})
	for _, k := range rows {
		if l := to[k.SessionID]; l != nil && l.status == lifecycle.Pending {
			l.request.Kernels = append(l.request.Kernels, plan.KernelRequest{ID: k.ID, Slots: k.Slots})
		}
	}
	return nil
}

// readAllocations adds the live allocations of the sessions among ids, or all of them,
// also those of sessions that have ended.
func (s *Scheduler) readAllocations(ctx context.Context, ids []uuid.UUID, to map[uuid.UUID]*live) error {
	q := s.client.Allocation.Query().Where(allocation.FreedAtIsNil())
	if ids != nil {
		if len(ids) == 0 {
			return nil
		}
		q.Where(func(s *sql.Selector) { s.Where(store.In(s.C(allocation.FieldSessionID), ids)) })
	}
	q.Select(allocation.FieldSessionID, allocation.FieldAgentID, allocation.FieldDeviceID, allocation.FieldSlot, allocation.FieldAmount,
		allocation.FieldCreatedAt, allocation.FieldOwnerID, allocation.FieldProjectID, allocation.FieldDomainID)
	rows, err := q.All(ctx)
	if err != nil {
		return fmt.Errorf("read allocations: %w", err)
	}
	for _, a := range rows {
		l := to[a.SessionID]
		if l == nil { // a leaked allocation: its session has ended, but the device is in use
			l = &live{request: plan.Request{SessionID: a.SessionID, Owner: a.OwnerID, Project: a.ProjectID, Domain: a.DomainID}}
			to[a.SessionID] = l
		}
		l.allocs = append(l.allocs, alloc{a.AgentID, a.DeviceID, a.Slot, a.Amount, a.CreatedAt})
	}
	for _, l := range to {
		l.sort()
	}
	return nil
}

// sort puts the allocations in an order that does not depend on the query.
func (l *live) sort() {
	slices.SortFunc(l.allocs, func(a, b alloc) int {
		return cmp.Or(slices.Compare(a.device[:], b.device[:]), cmp.Compare(a.slot, b.slot), cmp.Compare(a.amount, b.amount), a.since.Compare(b.since))
	})
}

// same reports whether two states of a session are the same for the scheduler.
func (l *live) same(o *live) bool {
	return l.status == o.status && l.attempt == o.attempt && l.started.Equal(o.started) && slices.EqualFunc(l.allocs, o.allocs, func(a, b alloc) bool {
		return a.agent == b.agent && a.device == b.device && a.slot == b.slot && a.amount == b.amount
	})
}

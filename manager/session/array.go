package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session/arrayindex"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/session/syntax"
	"github.com/berthhq/berth/manager/store"
)

// DefaultArraySize is the largest number of members of an array, unless configured.
const DefaultArraySize = 10_000

// CreateSessionArrayInput describes an array: sessions with the same request.
type CreateSessionArrayInput struct {
	Session CreateSessionInput
	Indexes string
}

// CancelSessionArrayInput names the array whose members are to end.
type CancelSessionArrayInput struct {
	ID    uuid.UUID
	Force *bool
}

// RetrySessionArrayInput names the array whose failed members are started again.
type RetrySessionArrayInput struct{ ID uuid.UUID }

// SessionArrayPayload answers the mutations of an array.
type SessionArrayPayload struct {
	Array    *ent.SessionArray
	Sessions int // that were created or ended
}

// member is the position of a spec in its array.
type member struct {
	array uuid.UUID
	index int
	first bool      // of the members that are stored together; the limits count all of them with this one
	of    int       // number of members that are stored together
	made  *newArray // with the first member: the array that is created with it
}

// newArray is an array to be stored.
type newArray struct {
	name string
	*arrayindex.Indexes
}

// counted reports whether the limits count this member together with the first one.
func (m *member) counted() bool { return m != nil && !m.first }

// count returns the number of sessions that the limits count for a spec.
func (m *member) count() int {
	if m == nil {
		return 1
	}
	return m.of
}

// CreateSessionArray checks the request of the members once, and stores all of them or none.
// A second request with the same idempotency key returns the array of the first one.
func (s *Service) CreateSessionArray(ctx context.Context, in CreateSessionArrayInput) (*SessionArrayPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	if key := in.Session.IdempotencyKey; key != nil {
		if prior, err := s.byKey(ctx, v, *key); prior != nil || err != nil {
			return s.arrayOf(ctx, prior, err)
		}
	}
	x, err := arrayindex.Parse(in.Indexes, cmp.Or(s.MaxArraySize, DefaultArraySize))
	if err != nil {
		return nil, err
	}
	specs, err := s.members(ctx, v, in.Session, x)
	if err != nil {
		return nil, problem.Within(err, "session")
	}
	stored, err := s.storer.store(ctx, specs)
	if sqlgraph.IsUniqueConstraintError(err) {
		return nil, problem.Exists("session.name", "a live session of yours already has the name of a member of array %q", specs[0].member.made.name)
	}
	if err != nil {
		return nil, problem.Within(err, "session")
	}
	s.created(ctx, stored...)
	return s.arrayOf(ctx, stored[0], nil)
}

// arrayOf returns the array of a session that was created with a request.
func (s *Service) arrayOf(ctx context.Context, one *ent.Session, err error) (*SessionArrayPayload, error) {
	if err != nil {
		return nil, err
	}
	if one.ArrayID == nil {
		return nil, problem.Invalid("session.idempotencyKey", "was used for a session that is not a member of an array")
	}
	a, err := s.Client.SessionArray.Get(ctx, *one.ArrayID)
	if err != nil {
		return nil, fmt.Errorf("read array: %w", err)
	}
	return &SessionArrayPayload{Array: a, Sessions: a.Size}, nil
}

// members makes the specs of a new array.
func (s *Service) members(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, x *arrayindex.Indexes) ([]*sessionSpec, error) {
	in, err := s.complete(ctx, v, in)
	if err != nil {
		return nil, err
	}
	spec, err := s.check(ctx, v, in)
	if err != nil {
		return nil, err
	}
	if spec.kind != session.TypeBatch {
		return nil, problem.Invalid("type", "only batch sessions can be members of an array")
	}
	if most := syntax.MaxName - 1 - len(fmt.Sprint(x.List[len(x.List)-1])); len(spec.name) > most {
		return nil, problem.Invalid("name", "must have at most %d characters, so that the names of the members have room for the index", most).WithLimit(fmt.Sprint(most))
	}
	made, array := &newArray{name: spec.name, Indexes: x}, id.New(id.SessionArray)
	specs := make([]*sessionSpec, len(x.List))
	for i, index := range x.List {
		one := *spec
		one.name = fmt.Sprintf("%s-%d", spec.name, index)
		one.member = &member{array: array, index: index, of: len(x.List)}
		if i == 0 {
			one.member.first, one.member.made = true, made
		} else {
			one.key = nil
		}
		specs[i] = &one
	}
	return specs, nil
}

// insertArray inserts the array of which spec is the first member, if it is new.
func insertArray(ctx context.Context, tx *ent.Tx, spec *sessionSpec) error {
	if spec.member == nil || spec.member.made == nil {
		return nil
	}
	made := spec.member.made
	err := tx.SessionArray.Create().SetID(spec.member.array).SetName(made.name).SetIndexes(made.Text).SetSize(len(made.List)).SetNillableMaxRunning(made.MaxRunning).
		SetDomainID(spec.domain).SetProjectID(spec.project).SetOwnerID(spec.owner).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store array %s: %w", made.name, err)
	}
	return nil
}

// findArray returns an array if the viewer is allowed to do op with its sessions.
func (s *Service) findArray(ctx context.Context, one uuid.UUID, op access.Operation) (*ent.SessionArray, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	a, err := s.Client.SessionArray.Get(ctx, one)
	if err != nil {
		return nil, permit.Missing(err, "array", "id")
	}
	_, err = permit.Check(ctx, op, access.Session, access.Object{ID: a.ID, Domain: a.DomainID, Project: a.ProjectID, Owner: a.OwnerID})
	return a, err
}

// endAtOnce limits the members that are ended in one transaction.
const endAtOnce = 500

// CancelSessionArray requests the end of all members that have not ended: first of those that wait,
// so that none of them starts in the meantime.
func (s *Service) CancelSessionArray(ctx context.Context, in CancelSessionArrayInput) (*SessionArrayPayload, error) {
	a, err := s.findArray(ctx, in.ID, access.Delete)
	if err != nil {
		return nil, err
	}
	out := &SessionArrayPayload{Array: a}
	sys := viewer.SystemContext(ctx)
	for _, pending := range []bool{true, false} {
		status := session.StatusEQ(lifecycle.Pending)
		if !pending {
			status = session.StatusNEQ(lifecycle.Pending)
		}
		ids, err := s.Client.Session.Query().Where(session.ArrayID(a.ID), session.TerminatedAtIsNil(), status).Order(session.ByID()).IDs(sys)
		if err != nil {
			return nil, fmt.Errorf("list members of array %s: %w", a.ID, err)
		}
		for some := range slices.Chunk(ids, endAtOnce) {
			n, err := s.endMembers(ctx, some, pending, in)
			if err != nil {
				return nil, err
			}
			out.Sessions += n
		}
	}
	return out, nil
}

// endMembers ends the waiting ones of some members together, or each of the others by itself.
func (s *Service) endMembers(ctx context.Context, ids []uuid.UUID, pending bool, in CancelSessionArrayInput) (n int, err error) {
	if !pending {
		for _, one := range ids {
			if _, err := s.TerminateSession(ctx, TerminateSessionInput{ID: one, Force: in.Force}); err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	reason := session.TerminationReasonUserRequested
	m := move.Move{To: lifecycle.Cancelled, Result: sessionevent.ResultInfo, Phase: "terminate", Code: "user_requested",
		Message: "cancelled before it started", Reason: &reason}
	var rows []*ent.Session
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) (err error) {
		rows, err = tx.Session.Query().Where(func(q *sql.Selector) { q.Where(store.In(q.C(session.FieldID), ids)) }, session.StatusEQ(lifecycle.Pending)).
			Order(session.ByID()).ForUpdate().All(viewer.SystemContext(ctx))
		if err != nil || len(rows) == 0 {
			return err
		}
		return move.Make(ctx, tx, m, rows...)
	})
	if err != nil {
		return 0, fmt.Errorf("cancel members: %w", err)
	}
	for _, row := range rows {
		s.noteMove(ctx, row, m)
		s.changed(ctx, row.ID)
	}
	return len(rows), nil
}

// ArrayCounts is the number of members of an array by state.
type ArrayCounts struct {
	Pending, Starting, Running, Ending int
	Succeeded, Failed, Cancelled       int
}

// live counts the members that have not ended.
func (c ArrayCounts) live() int { return c.Pending + c.Starting + c.Running + c.Ending }

// ArrayCounts counts the members of arrays; of each index, the latest session. The caller has
// checked that the viewer can see the arrays.
func (s *Service) ArrayCounts(ctx context.Context, arrays []uuid.UUID) (map[uuid.UUID]ArrayCounts, error) {
	var rows []struct {
		ArrayID uuid.UUID                  `json:"array_id"`
		Status  lifecycle.Status           `json:"status"`
		Result  session.Result             `json:"result"`
		Reason  *session.TerminationReason `json:"termination_reason"`
		Count   int                        `json:"count"`
	}
	err := s.Client.Session.Query().Where(session.ArrayIDIn(arrays...), session.Replaced(false)).
		GroupBy(session.FieldArrayID, session.FieldStatus, session.FieldResult, session.FieldTerminationReason).
		Aggregate(ent.Count()).Scan(viewer.SystemContext(ctx), &rows)
	if err != nil {
		return nil, fmt.Errorf("count members of arrays: %w", err)
	}
	out := make(map[uuid.UUID]ArrayCounts, len(arrays))
	for _, r := range rows {
		c := out[r.ArrayID]
		*c.of(r.Status, r.Result, r.Reason) += r.Count
		out[r.ArrayID] = c
	}
	return out, nil
}

// of returns the counter for members in a state.
func (c *ArrayCounts) of(status lifecycle.Status, result session.Result, reason *session.TerminationReason) *int {
	switch status {
	case lifecycle.Pending:
		return &c.Pending
	case lifecycle.Running:
		return &c.Running
	case lifecycle.Terminating:
		return &c.Ending
	case lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating:
		return &c.Starting
	}
	switch {
	case result == session.ResultSuccess:
		return &c.Succeeded
	case status == lifecycle.Cancelled, reason != nil && *reason == session.TerminationReasonUserRequested:
		return &c.Cancelled
	}
	return &c.Failed
}

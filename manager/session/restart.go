package session

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

// RestartSessionInput names the session to start again.
type RestartSessionInput struct{ ID uuid.UUID }

// RestartSession starts a session again, as a new session with the same request and name. A session
// that has not ended is ended in the same transaction, and the new one waits for its end. If the
// session was already started again and the new one is live, RestartSession returns that one.
func (s *Service) RestartSession(ctx context.Context, in RestartSessionInput) (*SessionPayload, error) {
	sess, err := s.find(ctx, in.ID, access.Delete)
	if err != nil {
		return nil, err
	}
	v := viewer.From(ctx)
	if sess.OwnerID != v.User {
		return nil, problem.Forbidden("session %s belongs to another user; clone it to start one of your own", sess.Name).WithField("id")
	}
	if sess.Replaced {
		next, err := s.replacement(ctx, sess)
		return &SessionPayload{Session: next}, err
	}
	found, err := s.Requests(ctx, []uuid.UUID{sess.ID})
	if err != nil {
		return nil, err
	}
	if found[sess.ID] == nil {
		return nil, problem.Forbidden("you may not enter session %s, so you cannot read its request", sess.Name).WithField("id")
	}
	specs, err := s.again(ctx, v, *found[sess.ID], sess)
	if err != nil {
		return nil, err
	}
	stored, err := s.storer.store(ctx, specs)
	if sqlgraph.IsUniqueConstraintError(err) {
		return nil, nameTaken(sess.Name)
	}
	if err != nil {
		return nil, err
	}
	s.created(ctx, stored...)
	return &SessionPayload{Session: stored[0]}, nil
}

// replacement returns the session that replaced another one, if it is live.
func (s *Service) replacement(ctx context.Context, sess *ent.Session) (*ent.Session, error) {
	next, err := s.Client.Session.Query().Where(session.RestartOfID(sess.ID)).Order(session.ByID(sql.OrderDesc())).First(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("read the replacement of session %s: %w", sess.ID, err)
	}
	if next == nil || next.Status.Final() {
		return nil, problem.Precondition("session %s was already started again; restart the session that replaced it, or clone this one", sess.Name).WithField("id")
	}
	return next, nil
}

// again returns specs that start sessions with equal requests again.
func (s *Service) again(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, rows ...*ent.Session) ([]*sessionSpec, error) {
	if in.StartsAt != nil && !in.StartsAt.After(clock.Now()) {
		in.StartsAt = nil
	}
	spec, err := s.check(ctx, v, in)
	if err != nil {
		return nil, err
	}
	specs := make([]*sessionSpec, len(rows))
	for i, row := range rows {
		one := *spec
		one.name, one.restarts, one.tags = row.Name, row, row.Tags
		if row.ArrayID != nil && row.ArrayIndex != nil {
			one.member = &member{array: *row.ArrayID, index: *row.ArrayIndex, first: i == 0, of: len(rows)}
		}
		specs[i] = &one
	}
	return specs, nil
}

// RetrySessionArray starts the members again that ended without success, and whose restart was
// not requested before.
func (s *Service) RetrySessionArray(ctx context.Context, in RetrySessionArrayInput) (*SessionArrayPayload, error) {
	a, err := s.findArray(ctx, in.ID, access.Delete)
	if err != nil {
		return nil, err
	}
	v := viewer.From(ctx)
	if a.OwnerID != v.User {
		return nil, problem.Forbidden("array %s belongs to another user", a.Name).WithField("id")
	}
	rows, err := s.Client.Session.Query().Where(session.ArrayID(a.ID), session.Replaced(false), session.TerminatedAtNotNil(),
		session.ResultNEQ(session.ResultSuccess)).Order(session.ByArrayIndex(), session.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list members of array %s: %w", a.ID, err)
	}
	specs, err := s.retries(ctx, v, rows)
	if err != nil || len(specs) == 0 {
		return &SessionArrayPayload{Array: a}, err
	}
	stored, err := s.storer.store(ctx, specs)
	if sqlgraph.IsUniqueConstraintError(err) {
		return nil, problem.Exists("id", "a live session of yours has the name of a member of array %q", a.Name)
	}
	if err != nil {
		return nil, err
	}
	s.created(ctx, stored...)
	return &SessionArrayPayload{Array: a, Sessions: len(stored)}, nil
}

// retries returns the specs of members to start again. Their requests are equal, unless some of
// them were changed while they waited.
func (s *Service) retries(ctx context.Context, v *viewer.Viewer, rows []*ent.Session) (specs []*sessionSpec, err error) {
	alike := map[string][]*ent.Session{}
	var order []string
	for _, row := range rows {
		key := fmt.Sprint(row.Slots.String(), row.ResourceGroupID, row.StrictAgents)
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], row)
	}
	for _, key := range order {
		same := alike[key]
		found, err := s.Requests(ctx, []uuid.UUID{same[0].ID})
		if err != nil {
			return nil, err
		}
		if found[same[0].ID] == nil {
			return nil, problem.Forbidden("you may not enter session %s, so you cannot read its request", same[0].Name).WithField("id")
		}
		more, err := s.again(ctx, v, *found[same[0].ID], same...)
		if err != nil {
			return nil, err
		}
		specs = append(specs, more...)
	}
	return specs, nil
}

// created counts the stored sessions and wakes the scheduler.
func (s *Service) created(ctx context.Context, sessions ...*ent.Session) {
	for _, c := range sessions {
		s.meter.Created.Inc()
		s.Logger.InfoContext(ctx, "session created", "session", c.ID, "owner", c.OwnerID, "group", c.ResourceGroupID, "slots", c.Slots.String())
		s.changedBy(ctx, c.ID, byCreation)
	}
}

// queued is the first entry of the history of a session.
func (spec *sessionSpec) queued() string {
	if spec.restarts != nil {
		return fmt.Sprintf("queued, as a restart of session %s", spec.restarts.ID)
	}
	return "queued"
}

// endedMove is a move that was made with the statements of another change.
type endedMove struct {
	from *ent.Session
	move move.Move
}

// replaced frees the names of the sessions that specs restart, and requests the end of those that
// are live.
func replaced(ctx context.Context, tx *ent.Tx, specs ...*sessionSpec) (ended []endedMove, err error) {
	var ids []uuid.UUID
	for _, spec := range specs {
		if spec.restarts != nil {
			ids = append(ids, spec.restarts.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	which := func(q *sql.Selector) { q.Where(store.In(q.C(session.FieldID), ids)) }
	rows, err := tx.Session.Query().Where(which).Order(session.ByID()).ForUpdate().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock sessions to restart: %w", err)
	}
	var lines []history.Entry
	for _, row := range rows {
		if row.Replaced {
			return nil, problem.Aborted("another request has started session %s again", row.Name)
		}
		m, err := endReplaced(ctx, tx, row)
		if err != nil {
			return nil, err
		}
		if m != nil {
			ended = append(ended, *m)
			continue
		}
		lines = append(lines, history.Entry{Session: row.ID, Phase: "terminate", From: &row.Status, To: row.Status,
			Result: sessionevent.ResultInfo, Attempt: row.Attempt, Code: codeRestarted, Message: "started again as a new session"})
	}
	if err := tx.Session.Update().Where(which).SetReplaced(true).AddVersion(1).Exec(ctx); err != nil {
		return nil, fmt.Errorf("replace sessions: %w", err)
	}
	return ended, history.Record(ctx, tx, lines...)
}

// codeRestarted is the code of entries about a restart.
const codeRestarted = "restarted"

// endReplaced requests the end of a session that is started again; nil: it is ending already.
func endReplaced(ctx context.Context, tx *ent.Tx, row *ent.Session) (*endedMove, error) {
	reason := session.TerminationReasonUserRequested
	if row.Status == lifecycle.Terminating && row.RetryAt != nil {
		err := tx.Session.UpdateOne(row).ClearRetryAt().SetTerminationReason(reason).SetStatusMessage("ended to be started again").Exec(ctx)
		return nil, err
	}
	if row.Status.Final() || row.Status == lifecycle.Terminating {
		return nil, nil
	}
	m := move.Move{To: lifecycle.Terminating, Result: sessionevent.ResultInfo, Phase: "terminate", Code: codeRestarted,
		Message: "ended to be started again", Reason: &reason}
	if row.Status == lifecycle.Pending {
		m.To = lifecycle.Cancelled
	}
	if err := move.Make(ctx, tx, m, row); err != nil {
		return nil, err
	}
	return &endedMove{from: row, move: m}, nil
}

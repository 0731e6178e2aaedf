package session

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
)

// move is one change of a session's state, with its history entry.
type move struct {
	to      lifecycle.Status
	result  sessionevent.Result
	phase   string
	code    string
	message string // kept on the session and in the history
	steps   []report.Step
	after   *move // a state that the session passes in the same moment, for the history

	reason   *session.TerminationReason
	outcome  session.Result // with a final state
	exitCode *int
	retryAt  *time.Time    // with Pending: not before; with Terminating: it is to start again then
	avoid    []uuid.UUID   // with Pending: agents to take last from now on
	within   time.Duration // instead of the state's own deadline
}

// Move changes the state of a session and of its kernels in tx, and frees
// what they hold when the new state holds nothing. It fails with Aborted when
// the session is no longer in the state that s was read in.
func Move(ctx context.Context, tx *ent.Tx, s *ent.Session, m move) error {
	if err := m.allowed(s); err != nil {
		return err
	}
	now := clock.Now()
	u := tx.Session.Update().Where(session.ID(s.ID), session.StatusEQ(s.Status)).
		SetStatus(m.to).AddVersion(1).SetStatusMessage(m.message)
	if s.Status == lifecycle.Terminating { // meanwhile its user may have ended what was to start again
		u.Where(func(q *sql.Selector) {
			if s.RetryAt != nil {
				q.Where(sql.NotNull(q.C(session.FieldRetryAt)))
			} else {
				q.Where(sql.IsNull(q.C(session.FieldRetryAt)))
			}
		})
	}
	if d := cmp.Or(m.within, lifecycle.Deadline(m.to)); d > 0 && lifecycle.Deadline(m.to) > 0 {
		u.SetDeadlineAt(now.Add(d))
	} else {
		u.ClearDeadlineAt()
	}
	if m.retryAt != nil {
		u.SetRetryAt(*m.retryAt)
	} else {
		u.ClearRetryAt()
	}
	if s.Status == lifecycle.Running {
		u.ClearIdle()
	}
	if m.reason != nil {
		u.SetTerminationReason(*m.reason)
	}
	if m.exitCode != nil {
		u.SetExitCode(*m.exitCode)
	}
	switch m.to {
	case lifecycle.Scheduled:
		u.SetScheduledAt(now).ClearPending()
	case lifecycle.Running:
		u.SetStartedAt(now)
	case lifecycle.Pending:
		u.ClearScheduledAt().ClearStartedAt().ClearTerminationReason().AddAttempt(1)
		if len(m.avoid) > 0 {
			u.SetAvoidAgents(avoiding(s.AvoidAgents, m.avoid))
		}
	}
	if m.to.Final() {
		u.SetTerminatedAt(now).ClearPending()
		if m.outcome != "" {
			u.SetResult(m.outcome)
		}
	}
	n, err := u.Save(ctx)
	if err != nil {
		return fmt.Errorf("move session %s to %s: %w", s.ID, m.to, err)
	}
	if n == 0 {
		return fmt.Errorf("session %s is no longer %s: %w", s.ID, s.Status, errdefs.ErrAborted)
	}
	if err := moveKernels(ctx, tx, s.ID, m, now); err != nil {
		return err
	}
	return record(ctx, tx, m.entries(s)...)
}

// allowed returns FailedPrecondition if the state machine has no such move.
func (m move) allowed(s *ent.Session) error {
	if !lifecycle.CanMove(s.Status, m.to) {
		return fmt.Errorf("session %s cannot go from %s to %s: %w", s.ID, s.Status, m.to, errdefs.ErrFailedPrecondition)
	}
	return nil
}

// entries are the lines of history of a move from the state that s was read in.
func (m move) entries(s *ent.Session) (list []entry) {
	from := &s.Status
	if m.after != nil {
		list = append(list, entry{session: s.ID, phase: m.after.phase, from: from, to: m.after.to, result: m.result,
			attempt: s.Attempt, message: m.after.message})
		from = &m.after.to
	}
	return append(list, entry{session: s.ID, phase: m.phase, from: from, to: m.to, result: m.result,
		attempt: s.Attempt, code: m.code, message: m.message, steps: m.steps})
}

// moveKernels lets the kernels follow their session.
func moveKernels(ctx context.Context, tx *ent.Tx, id uuid.UUID, m move, now time.Time) error {
	k := tx.Kernel.Update().Where(kernel.SessionID(id), kernel.TerminatedAtIsNil()).SetStatus(m.to)
	switch {
	case m.to == lifecycle.Running:
		k.SetStartedAt(now)
	case m.to == lifecycle.Pending:
		k.ClearAgentID().ClearStartedAt()
	case m.to.Final():
		k.SetTerminatedAt(now).SetStatusMessage(m.message)
		if m.exitCode != nil {
			k.SetExitCode(*m.exitCode)
		}
	}
	if err := k.Exec(ctx); err != nil {
		return fmt.Errorf("move kernels of session %s: %w", id, err)
	}
	if m.to != lifecycle.Pending && !m.to.Final() {
		return nil
	}
	err := tx.Allocation.Update().Where(allocation.SessionID(id), allocation.FreedAtIsNil()).SetFreedAt(now).Exec(ctx)
	if err != nil {
		return fmt.Errorf("free allocations of session %s: %w", id, err)
	}
	return disconnect(ctx, tx, id, now)
}

// apply stores one move and publishes an event of it.
func (s *Service) apply(ctx context.Context, epoch int64, sess *ent.Session, m move) error {
	if err := s.commit(ctx, epoch, sess, m); err != nil {
		return err
	}
	s.changed(ctx, sess.ID)
	return nil
}

// commit runs one fenced move in its own transaction.
func (s *Service) commit(ctx context.Context, epoch int64, sess *ent.Session, m move) error {
	if m.advances() {
		if err := s.advance(ctx, epoch, sess, m); err != nil {
			return err
		}
		s.noteMove(ctx, sess, m)
		return nil
	}
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := Fence(ctx, tx, epoch); err != nil {
		return err
	}
	if err := Move(ctx, tx, sess, m); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.noteMove(ctx, sess, m)
	return nil
}

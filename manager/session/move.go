package session

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/store"
)

// move is one change of a session's state, with its entry in the history.
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
	retryAt  *time.Time    // with Pending: not before; with Terminating: the session starts again then
	avoid    []uuid.UUID   // with Pending: agents to prefer least from now on
	within   time.Duration // instead of the state's own deadline

	epoch  int64   // of the leader that makes the move; 0: any manager can make it
	places []Place // with Scheduled: the kernels' agents and allocations
}

// executor is a transaction, or a client whose statements are transactions of their own.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (stdsql.Result, error)
}

// Move changes the state of sessions and of their kernels, frees what they have if the
// new state has no resources, and adds to their history: all in one statement. The
// sessions are in the same state. Move fails with FailedPrecondition if the state machine
// has no such move, and with Aborted if a session is no longer in the state in which it
// was read, or m.epoch is not the newest. After an error, a transaction must be rolled
// back; without one, only a single session can be moved.
func Move(ctx context.Context, on executor, m move, sessions ...*ent.Session) error {
	from := sessions[0].Status
	if !lifecycle.CanMove(from, m.to) {
		return fmt.Errorf("session %s cannot go from %s to %s: %w", sessions[0].ID, from, m.to, errdefs.ErrFailedPrecondition)
	}
	var history []entry
	for _, s := range sessions {
		history = append(history, m.entries(s)...)
	}
	rows, err := eventRows(history)
	if err != nil {
		return err
	}
	args, err := m.args(clock.Now(), rows, sessions)
	if err != nil {
		return err
	}
	done, err := on.ExecContext(ctx, m.statement(len(sessions)), args...)
	if err != nil {
		return fmt.Errorf("move session %s to %s: %w", sessions[0].ID, m.to, err)
	}
	switch n, err := done.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("move session %s to %s: %w", sessions[0].ID, m.to, err)
	case n != int64(len(history)) && len(sessions) == 1:
		return fmt.Errorf("session %s is no longer %s: %w", sessions[0].ID, from, errdefs.ErrAborted)
	case n != int64(len(history)):
		return fmt.Errorf("some of %d sessions are no longer %s: %w", len(sessions), from, errdefs.ErrAborted)
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

// advances reports whether a move only brings a session nearer to its run.
func (m move) advances() bool {
	switch m.to {
	case lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating, lifecycle.Running:
		return true
	}
	return false
}

// moveAlone makes a move in a transaction of its own. Users and the scheduler add to the
// history of a session meanwhile. The row is locked before the move's own entry gets its
// time, so that the entries are in the order of the transactions. A session that comes
// nearer to its run is moved by the leader alone, in one statement.
func (s *Service) moveAlone(ctx context.Context, m move, sess *ent.Session) error {
	if m.advances() {
		return Move(ctx, s.Client, m, sess)
	}
	return store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := lockRows(ctx, tx, sess); err != nil {
			return err
		}
		return Move(ctx, tx, m, sess)
	})
}

// lockRows waits for the transactions that change sessions, and locks the sessions.
func lockRows(ctx context.Context, tx *ent.Tx, sessions ...*ent.Session) error {
	ids := make([]uuid.UUID, len(sessions))
	for i, s := range sessions {
		ids[i] = s.ID
	}
	if _, err := tx.Session.Query().Where(session.IDIn(ids...)).Order(session.ByID()).ForUpdate().IDs(viewer.SystemContext(ctx)); err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
	return nil
}

// commit makes a leader's move in a transaction of its own.
func (s *Service) commit(ctx context.Context, epoch int64, sess *ent.Session, m move) error {
	m.epoch = epoch
	if err := s.moveAlone(ctx, m, sess); err != nil {
		if errdefs.IsAborted(err) {
			return cmp.Or(leader.Fenced(ctx, s.Client, epoch), err)
		}
		return err
	}
	s.noteMove(ctx, sess, m)
	return nil
}

// apply is commit, and publishes an event of the move.
func (s *Service) apply(ctx context.Context, epoch int64, sess *ent.Session, m move) error {
	if err := s.commit(ctx, epoch, sess, m); err != nil {
		return err
	}
	s.changed(ctx, sess.ID)
	return nil
}

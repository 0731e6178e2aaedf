package session

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
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
	message string // stored on the session and in the history
	steps   []report.Step
	after   *move // a state that the session passes in the same moment, for the history

	reason   *session.TerminationReason
	outcome  session.Result // with a final state
	exitCode *int
	retryAt  *time.Time    // with Pending: not before; with Terminating: the session starts again then
	avoid    []uuid.UUID   // with Pending: agents to use last from now on
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

// advances reports whether a move only brings a session closer to its run.
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

// The statement of a move is put together from these parts. A start has three of them one
// after the other, so each is one round trip; with a client, it is also the transaction.
// The arguments are those of move.args. Nothing happens without the row of the fence, and
// kernels, allocations and history follow only sessions that have moved.
const (
	moveFence = `WITH f AS (SELECT FROM fences WHERE name = '` + leader.FenceName + `' AND epoch = $4::bigint FOR SHARE),
`
	moveSessions = `s AS (UPDATE sessions SET status = $6::text, version = version + 1, status_message = $7, deadline_at = $8::timestamptz, retry_at = $9::timestamptz,
  idle = CASE WHEN $5::text = 'running' THEN NULL ELSE idle END,
  pending = CASE WHEN $10::boolean OR $6::text = 'scheduled' THEN NULL ELSE pending END,
  scheduled_at = CASE $6::text WHEN 'scheduled' THEN $1::timestamptz WHEN 'pending' THEN NULL ELSE scheduled_at END,
  started_at = CASE $6::text WHEN 'running' THEN $1::timestamptz WHEN 'pending' THEN NULL ELSE started_at END,
  terminated_at = CASE WHEN $10::boolean THEN $1::timestamptz ELSE terminated_at END,
  attempt = CASE $6::text WHEN 'pending' THEN attempt + 1 ELSE attempt END,
  termination_reason = CASE $6::text WHEN 'pending' THEN NULL ELSE COALESCE($11::text, termination_reason) END,
  result = COALESCE($12::text, result), exit_code = COALESCE($13::bigint, exit_code), avoid_agents = COALESCE($14::jsonb, avoid_agents)
  WHERE `
	moveFrom = ` AND status = $5::text AND ($15::boolean IS NULL OR (retry_at IS NOT NULL) = $15::boolean) AND ($4::bigint IS NULL OR EXISTS (SELECT FROM f))
  RETURNING sessions.id),
`
	moveKernels = `k AS (UPDATE kernels SET status = $6::text,
  agent_id = CASE $6::text WHEN 'pending' THEN NULL ELSE agent_id END,
  started_at = CASE $6::text WHEN 'running' THEN $1::timestamptz WHEN 'pending' THEN NULL ELSE started_at END,
  terminated_at = CASE WHEN $10::boolean THEN $1::timestamptz ELSE terminated_at END,
  status_message = CASE WHEN $10::boolean THEN $7 ELSE status_message END,
  exit_code = CASE WHEN $10::boolean THEN COALESCE($13::bigint, exit_code) ELSE exit_code END
  FROM s WHERE session_id = s.id AND terminated_at IS NULL)
`
	moveFree = `, a AS (UPDATE allocations SET freed_at = $1::timestamptz FROM s WHERE allocations.session_id = s.id AND freed_at IS NULL),
n AS (UPDATE session_networks SET freed_at = $1::timestamptz FROM s WHERE session_networks.session_id = s.id AND freed_at IS NULL)
`
	moveHistory = insertEvents + ` JOIN s ON s.id = w.session_id`
)

// statement returns the text of a move of n sessions.
func (m move) statement(n int) string {
	which := "sessions.id = $3::uuid"
	if n > 1 {
		which = "sessions.id = ANY ($3::text[]::uuid[])"
	}
	text := moveFence + moveSessions + which + moveFrom
	switch {
	case m.to == lifecycle.Scheduled:
		return text + placeKernels + placeAllocations + moveHistory + placeAll
	case m.to == lifecycle.Pending || m.to.Final():
		return text + moveKernels + moveFree + moveHistory
	}
	return text + moveKernels + moveHistory
}

// args returns the arguments of the statement of a move.
func (m move) args(now time.Time, history string, sessions []*ent.Session) ([]any, error) {
	one := sessions[0]
	var ids any = one.ID
	if len(sessions) > 1 {
		list := make([]string, len(sessions))
		for i, s := range sessions {
			list[i] = s.ID.String()
		}
		ids = list
	}
	var epoch *int64
	if m.epoch != 0 {
		epoch = &m.epoch
	}
	var deadline *time.Time
	if d := cmp.Or(m.within, lifecycle.Deadline(m.to)); d > 0 && lifecycle.Deadline(m.to) > 0 {
		at := now.Add(d)
		deadline = &at
	}
	var outcome, avoid *string
	if m.to.Final() && m.outcome != "" {
		text := string(m.outcome)
		outcome = &text
	}
	if m.to == lifecycle.Pending && len(m.avoid) > 0 {
		list, err := json.Marshal(avoiding(one.AvoidAgents, m.avoid))
		if err != nil {
			return nil, fmt.Errorf("move session %s to %s: %w", one.ID, m.to, err)
		}
		text := string(list)
		avoid = &text
	}
	var retrying *bool // its user may have ended a session that was to start again
	if one.Status == lifecycle.Terminating {
		yes := one.RetryAt != nil
		retrying = &yes
	}
	args := []any{now, history, ids, epoch, string(one.Status), string(m.to), m.message, deadline, m.retryAt, m.to.Final(),
		(*string)(m.reason), outcome, m.exitCode, avoid, retrying}
	if m.to != lifecycle.Scheduled {
		return args, nil
	}
	placed, err := placeArgs(m.places)
	return append(args, placed...), err
}

// entry is one line of a session's history.
type entry struct {
	session uuid.UUID
	phase   string
	from    *lifecycle.Status
	to      lifecycle.Status
	result  sessionevent.Result
	attempt int
	code    string
	message string
	steps   []report.Step
}

// eventRow is the row of an entry, by the names of its columns.
type eventRow struct {
	ID        uuid.UUID           `json:"id"`
	SessionID uuid.UUID           `json:"session_id"`
	Phase     string              `json:"phase"`
	From      *lifecycle.Status   `json:"from_status"`
	To        lifecycle.Status    `json:"to_status"`
	Result    sessionevent.Result `json:"result"`
	Attempt   int                 `json:"attempt"`
	Code      string              `json:"code"`
	Message   string              `json:"message"`
	Steps     []report.Step       `json:"steps"`
}

// eventRows is what $2 of insertEvents is for the entries.
func eventRows(entries []entry) (string, error) {
	rows := make([]eventRow, len(entries))
	for i, e := range entries {
		if e.steps == nil {
			e.steps = []report.Step{}
		}
		rows[i] = eventRow{id.New(id.SessionEvent), e.session, e.phase, e.from, e.to, e.result, e.attempt, e.code, e.message, e.steps}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return "", fmt.Errorf("record history of session %s and others: %w", entries[0].session, err)
	}
	return string(text), nil
}

// insertEvents inserts any number of entries. $1 is the time.
const insertEvents = `INSERT INTO session_events (id, session_id, at, phase, from_status, to_status, result, attempt, code, message, steps)
SELECT w.id, w.session_id, $1::timestamptz, w.phase, w.from_status, w.to_status, w.result, w.attempt, w.code, w.message, w.steps
FROM json_to_recordset($2::json) AS w(id uuid, session_id uuid, phase text, from_status text, to_status text, result text,
  attempt bigint, code text, message text, steps jsonb)`

// record writes the entries in one statement, however many there are.
func record(ctx context.Context, tx *ent.Tx, entries ...entry) error {
	if len(entries) == 0 {
		return nil
	}
	rows, err := eventRows(entries)
	if err != nil {
		return err
	}
	if err := exactly(ctx, tx, len(entries), insertEvents, clock.Now(), rows); err != nil {
		return fmt.Errorf("record history of session %s and others: %w", entries[0].session, err)
	}
	return nil
}

// Package move changes the states of sessions, one statement for each change.
package move

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"slices"
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
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/store"
)

// Move is one change of a session's state, with its entry in the history.
type Move struct {
	To      lifecycle.Status
	Result  sessionevent.Result
	Phase   string
	Code    string
	Message string // stored on the session and in the history
	Steps   []report.Step
	After   *Move // a state that the session passes in the same moment, for the history

	Reason   *session.TerminationReason
	Outcome  session.Result // with a final state
	ExitCode *int
	RetryAt  *time.Time    // with Pending: not before; with Terminating: the session starts again then
	Avoid    []uuid.UUID   // with Pending: agents to use last from now on
	Within   time.Duration // instead of the state's own deadline

	Epoch  int64   // of the leader that makes the move; 0: any manager can make it
	Places []Place // with Scheduled: the kernels' agents and allocations
}

// executor is a transaction, or a client whose statements are transactions of their own.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (stdsql.Result, error)
}

// Make changes the state of sessions and of their kernels, frees what they have if the
// new state has no resources, and adds to their history: all in one statement. The
// sessions are in the same state. Make fails with FailedPrecondition if the state machine
// has no such move, and with Aborted if a session is no longer in the state in which it
// was read, or m.Epoch is not the newest. After an error, a transaction must be rolled
// back; without one, only a single session can be moved.
func Make(ctx context.Context, on executor, m Move, sessions ...*ent.Session) error {
	from := sessions[0].Status
	if !lifecycle.CanMove(from, m.To) {
		return fmt.Errorf("session %s cannot go from %s to %s: %w", sessions[0].ID, from, m.To, errdefs.ErrFailedPrecondition)
	}
	var lines []history.Entry
	for _, s := range sessions {
		lines = append(lines, m.entries(s)...)
	}
	rows, err := history.Rows(lines)
	if err != nil {
		return err
	}
	args, err := m.args(clock.Now(), rows, sessions)
	if err != nil {
		return err
	}
	done, err := on.ExecContext(ctx, m.statement(len(sessions)), args...)
	if err != nil {
		return fmt.Errorf("move session %s to %s: %w", sessions[0].ID, m.To, err)
	}
	switch n, err := done.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("move session %s to %s: %w", sessions[0].ID, m.To, err)
	case n != int64(len(lines)) && len(sessions) == 1:
		return fmt.Errorf("session %s is no longer %s: %w", sessions[0].ID, from, errdefs.ErrAborted)
	case n != int64(len(lines)):
		return fmt.Errorf("some of %d sessions are no longer %s: %w", len(sessions), from, errdefs.ErrAborted)
	}
	return nil
}

// entries are the lines of history of a move from the state that s was read in.
func (m Move) entries(s *ent.Session) (list []history.Entry) {
	from := &s.Status
	if m.After != nil {
		list = append(list, history.Entry{Session: s.ID, Phase: m.After.Phase, From: from, To: m.After.To, Result: m.Result,
			Attempt: s.Attempt, Message: m.After.Message})
		from = &m.After.To
	}
	return append(list, history.Entry{Session: s.ID, Phase: m.Phase, From: from, To: m.To, Result: m.Result,
		Attempt: s.Attempt, Code: m.Code, Message: m.Message, Steps: m.Steps})
}

// advances reports whether a move only brings a session closer to its run.
func (m Move) advances() bool {
	switch m.To {
	case lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating, lifecycle.Running:
		return true
	}
	return false
}

// Alone makes a move in a transaction of its own. Users and the scheduler add to the
// history of a session meanwhile. The row is locked before the move's own entry gets its
// time, so that the entries are in the order of the transactions. A session that comes
// nearer to its run is moved by the leader alone, in one statement.
func Alone(ctx context.Context, client *ent.Client, m Move, sess *ent.Session) error {
	if m.advances() {
		return Make(ctx, client, m, sess)
	}
	return store.InTx(ctx, client, func(tx *ent.Tx) error {
		if err := LockRows(ctx, tx, sess); err != nil {
			return err
		}
		return Make(ctx, tx, m, sess)
	})
}

// LockRows waits for the transactions that change sessions, and locks the sessions.
func LockRows(ctx context.Context, tx *ent.Tx, sessions ...*ent.Session) error {
	ids := make([]uuid.UUID, len(sessions))
	for i, s := range sessions {
		ids[i] = s.ID
	}
	if _, err := tx.Session.Query().Where(session.IDIn(ids...)).Order(session.ByID()).ForUpdate().IDs(viewer.SystemContext(ctx)); err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
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
	moveHistory = history.Insert + ` JOIN s ON s.id = w.session_id`
)

// statement returns the text of a move of n sessions.
func (m Move) statement(n int) string {
	which := "sessions.id = $3::uuid"
	if n > 1 {
		which = "sessions.id = ANY ($3::text[]::uuid[])"
	}
	text := moveFence + moveSessions + which + moveFrom
	switch {
	case m.To == lifecycle.Scheduled:
		return text + placeKernels + placeAllocations + moveHistory + placeAll
	case m.To == lifecycle.Pending || m.To.Final():
		return text + moveKernels + moveFree + moveHistory
	}
	return text + moveKernels + moveHistory
}

// args returns the arguments of the statement of a move.
func (m Move) args(now time.Time, entries string, sessions []*ent.Session) ([]any, error) {
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
	if m.Epoch != 0 {
		epoch = &m.Epoch
	}
	var deadline *time.Time
	if d := cmp.Or(m.Within, lifecycle.Deadline(m.To)); d > 0 && lifecycle.Deadline(m.To) > 0 {
		at := now.Add(d)
		deadline = &at
	}
	var outcome, avoid *string
	if m.To.Final() && m.Outcome != "" {
		text := string(m.Outcome)
		outcome = &text
	}
	if m.To == lifecycle.Pending && len(m.Avoid) > 0 {
		list, err := json.Marshal(avoiding(one.AvoidAgents, m.Avoid))
		if err != nil {
			return nil, fmt.Errorf("move session %s to %s: %w", one.ID, m.To, err)
		}
		text := string(list)
		avoid = &text
	}
	var retrying *bool // its user may have ended a session that was to start again
	if one.Status == lifecycle.Terminating {
		yes := one.RetryAt != nil
		retrying = &yes
	}
	args := []any{now, entries, ids, epoch, string(one.Status), string(m.To), m.Message, deadline, m.RetryAt, m.To.Final(),
		(*string)(m.Reason), outcome, m.ExitCode, avoid, retrying}
	if m.To != lifecycle.Scheduled {
		return args, nil
	}
	placed, err := placeArgs(m.Places)
	return append(args, placed...), err
}

// maxAvoided limits the agents that a session remembers because it failed there.
const maxAvoided = 8

// avoiding adds agents to the list of those where a session failed; the latest ones are kept.
func avoiding(old, more []uuid.UUID) []uuid.UUID {
	list := slices.DeleteFunc(slices.Clone(old), func(id uuid.UUID) bool { return slices.Contains(more, id) })
	list = append(list, more...)
	return list[max(0, len(list)-maxAvoided):]
}

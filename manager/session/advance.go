package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
)

// ahead are the states on the way from the placement to the run.
var ahead = []lifecycle.Status{lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating, lifecycle.Running}

// advances reports whether a move only brings a session nearer to its run, so that
// nothing but the state, its message and its times change.
func (m move) advances() bool {
	return slices.Contains(ahead, m.to) && m.reason == nil && m.exitCode == nil && m.retryAt == nil && len(m.avoid) == 0 && m.within == 0
}

// advanceStatement makes a fenced move and is a transaction of its own: a start has two of
// them one after the other. Nothing happens if the epoch is not the newest, or the session
// is no longer in its state; the entries of history are inserted only with the move.
const advanceStatement = `WITH f AS (SELECT epoch FROM fences WHERE name = $3 FOR SHARE),
s AS (UPDATE sessions SET status = $7, version = version + 1, status_message = $8, deadline_at = $9::timestamptz, retry_at = NULL,
  started_at = CASE WHEN $10::boolean THEN $1::timestamptz ELSE started_at END
  FROM f WHERE f.epoch = $4 AND sessions.id = $5 AND sessions.status = $6 RETURNING sessions.id),
k AS (UPDATE kernels SET status = $7, started_at = CASE WHEN $10::boolean THEN $1::timestamptz ELSE started_at END
  FROM s WHERE session_id = s.id AND terminated_at IS NULL)
` + insertEvents + ` JOIN s ON s.id = w.session_id`

// advance is commit for a move that advances, in one statement.
func (s *Service) advance(ctx context.Context, epoch int64, sess *ent.Session, m move) error {
	if err := m.allowed(sess); err != nil {
		return err
	}
	entries := m.entries(sess)
	rows, err := eventRows(entries)
	if err != nil {
		return err
	}
	now := clock.Now()
	var deadline *time.Time
	if d := lifecycle.Deadline(m.to); d > 0 {
		at := now.Add(d)
		deadline = &at
	}
	done, err := s.Client.ExecContext(ctx, advanceStatement, now, rows, FenceName, epoch, sess.ID, string(sess.Status),
		string(m.to), m.message, deadline, m.to == lifecycle.Running)
	if err != nil {
		return fmt.Errorf("move session %s to %s: %w", sess.ID, m.to, err)
	}
	switch n, err := done.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("move session %s to %s: %w", sess.ID, m.to, err)
	case n == int64(len(entries)):
		return nil
	}
	if err := Fenced(ctx, s.Client, epoch); err != nil {
		return err
	}
	return fmt.Errorf("session %s is no longer %s: %w", sess.ID, sess.Status, errdefs.ErrAborted)
}

package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
)

// waitedOut lists the sessions that wait for longer than their group lets them,
// from when each could first start: it was made, its time had come, what it needs
// had succeeded, or it had come back to the queue.
const waitedOut = `SELECT s.id, g.name, g.pending_timeout FROM sessions s JOIN resource_groups g ON g.id = s.resource_group_id
WHERE s.terminated_at IS NULL AND s.status = 'pending' AND g.pending_timeout > 0
  AND NOT EXISTS (SELECT FROM session_dependencies d WHERE d.session_id = s.id AND NOT d.satisfied)
  AND GREATEST(s.created_at, s.starts_at,
    (SELECT max(n.terminated_at) FROM session_dependencies d JOIN sessions n ON n.id = d.needed_id WHERE d.session_id = s.id),
    (SELECT max(e.at) FROM session_events e WHERE e.session_id = s.id AND e.to_status = 'pending' AND e.from_status <> 'pending')
  ) + g.pending_timeout * interval '1 second' <= $1
ORDER BY s.created_at, s.id LIMIT 500`

// cancelWaitedOut ends what has waited for too long, until ctx ends.
func (s *Service) cancelWaitedOut(ctx context.Context, epoch int64) {
	tick := clock.NewTicker("pending timeout", passEvery)
	defer tick.Stop()
	for {
		if err := s.waitedOut(ctx, epoch); err != nil && ctx.Err() == nil && !isAborted(err) {
			s.Logger.Error("cancel sessions that waited for too long", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Service) waitedOut(ctx context.Context, epoch int64) error {
	rows, err := s.Client.QueryContext(ctx, waitedOut, clock.Now())
	if err != nil {
		return fmt.Errorf("find sessions that waited for too long: %w", err)
	}
	defer rows.Close()
	why := map[uuid.UUID]string{}
	for rows.Next() {
		var id uuid.UUID
		var group string
		var seconds int
		if err := rows.Scan(&id, &group, &seconds); err != nil {
			return fmt.Errorf("find sessions that waited for too long: %w", err)
		}
		why[id] = fmt.Sprintf("waited for %s, which is as long as the resource group %s allows", time.Duration(seconds)*time.Second, group)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("find sessions that waited for too long: %w", err)
	}
	rows.Close()
	reason := session.TerminationReasonPendingTimeout
	for id, text := range why {
		sess, err := s.Client.Session.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("read session: %w", err)
		}
		if sess.Status != lifecycle.Pending {
			continue
		}
		err = s.apply(ctx, epoch, sess, move{to: lifecycle.Cancelled, phase: "schedule", result: sessionevent.ResultExpired,
			code: string(reason), message: text, reason: &reason, outcome: session.ResultFailure})
		if err != nil && !isAborted(err) {
			return err
		}
	}
	return nil
}

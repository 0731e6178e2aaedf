package starts

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/lifecycle"
)

// history is the history of one session.
type history struct {
	queued  time.Time
	entries []Entry
}

// histories reads the histories of sessions.
func (s *Service) histories(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*history, error) {
	res, err := s.client.QueryContext(ctx, `SELECT s.id, GREATEST(s.created_at, s.starts_at), e.id, e.at, COALESCE(e.from_status, ''), COALESCE(e.to_status, ''), e.code
FROM sessions s JOIN session_events e ON e.session_id = s.id WHERE s.id = ANY($1::uuid[]) ORDER BY e.session_id, e.at, e.id`, ids)
	if err != nil {
		return nil, fmt.Errorf("read the history of sessions: %w", err)
	}
	defer res.Close()
	out := map[uuid.UUID]*history{}
	for res.Next() {
		var id uuid.UUID
		var queued time.Time
		var e Entry
		var from, to string
		if err := res.Scan(&id, &queued, &e.ID, &e.At, &from, &to, &e.Code); err != nil {
			return nil, err
		}
		e.From, e.To = lifecycle.Status(from), lifecycle.Status(to)
		if out[id] == nil {
			out[id] = &history{queued: queued}
		}
		out[id].entries = append(out[id].entries, e)
	}
	return out, res.Err()
}

// rows are starts that are stored with one statement.
type rows struct {
	ids, sessions              []uuid.UUID
	newest                     []bool // only the newest start of a session is on the machine that its kernel names
	reasons, paths             []string
	at                         []time.Time
	wait, queue, pull, creates []int64
}

func (r *rows) add(session uuid.UUID, s Start, newest bool) {
	r.ids, r.sessions, r.newest = append(r.ids, s.Event), append(r.sessions, session), append(r.newest, newest)
	r.reasons, r.paths, r.at = append(r.reasons, string(s.Reason)), append(r.paths, s.Path), append(r.at, s.At)
	queue, pull, create := s.Queue.Milliseconds(), s.Pull.Milliseconds(), s.Create.Milliseconds()
	r.wait = append(r.wait, queue+pull+create)
	r.queue, r.pull, r.creates = append(r.queue, queue), append(r.pull, pull), append(r.creates, create)
}

func (r *rows) insert(ctx context.Context, client *ent.Client) error {
	if len(r.ids) == 0 {
		return nil
	}
	_, err := client.ExecContext(ctx, `INSERT INTO session_starts (id, domain_id, project_id, owner_id, session_id, resource_group_id, image_id, agent_id,
  session_type, reason, path, started_at, wait_ms, queue_ms, pull_ms, create_ms)
SELECT n.id, s.domain_id, s.project_id, s.owner_id, s.id, s.resource_group_id, s.image_id,
  CASE WHEN n.newest THEN (SELECT k.agent_id FROM kernels k WHERE k.session_id = s.id AND k.role = 'main') END,
  s.type, n.reason, n.path, n.started_at, n.wait_ms, n.queue_ms, n.pull_ms, n.create_ms
FROM unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
  AS n (id, session_id, newest, reason, path, started_at, wait_ms, queue_ms, pull_ms, create_ms)
JOIN sessions s ON s.id = n.session_id ON CONFLICT (id) DO NOTHING`,
		r.ids, r.sessions, r.newest, r.reasons, r.paths, r.at, r.wait, r.queue, r.pull, r.creates)
	if err != nil {
		return fmt.Errorf("store starts: %w", err)
	}
	return nil
}

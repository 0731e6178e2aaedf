package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
)

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

// record writes the entries in one statement, however many there are.
func record(ctx context.Context, tx *ent.Tx, entries ...entry) error {
	if len(entries) == 0 {
		return nil
	}
	var ids, sessions, phases, froms, tos, results, codes, messages, steps []string
	var attempts []int64
	for _, e := range entries {
		if e.steps == nil {
			e.steps = []report.Step{}
		}
		text, err := json.Marshal(e.steps)
		if err != nil {
			return fmt.Errorf("record history of session %s: %w", e.session, err)
		}
		from := ""
		if e.from != nil {
			from = string(*e.from)
		}
		ids, sessions = append(ids, id.New(id.SessionEvent).String()), append(sessions, e.session.String())
		phases, froms, tos = append(phases, e.phase), append(froms, from), append(tos, string(e.to))
		results, attempts = append(results, string(e.result)), append(attempts, int64(e.attempt))
		codes, messages, steps = append(codes, e.code), append(messages, e.message), append(steps, string(text))
	}
	err := exactly(ctx, tx, len(entries), `INSERT INTO session_events
  (id, session_id, at, phase, from_status, to_status, result, attempt, code, message, steps)
SELECT w.id, w.session, $1, w.phase, nullif(w.from_status, ''), w.to_status, w.result, w.attempt, w.code, w.message, w.steps
FROM unnest($2::text[]::uuid[], $3::text[]::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[], $11::text[]::jsonb[])
  AS w(id, session, phase, from_status, to_status, result, attempt, code, message, steps)`,
		clock.Now(), ids, sessions, phases, froms, tos, results, attempts, codes, messages, steps)
	if err != nil {
		return fmt.Errorf("record history of session %s and others: %w", entries[0].session, err)
	}
	return nil
}

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

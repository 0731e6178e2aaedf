// Package history writes the history of sessions.
package history

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
	"github.com/berthhq/berth/manager/store"
)

// Entry is one line of a session's history.
type Entry struct {
	Session uuid.UUID
	Phase   string
	From    *lifecycle.Status
	To      lifecycle.Status
	Result  sessionevent.Result
	Attempt int
	Code    string
	Message string
	Steps   []report.Step
}

// row is the row of an entry, by the names of its columns.
type row struct {
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

// Rows returns the entries as the argument $2 of Insert.
func Rows(entries []Entry) (string, error) {
	list := make([]row, len(entries))
	for i, e := range entries {
		if e.Steps == nil {
			e.Steps = []report.Step{}
		}
		list[i] = row{id.New(id.SessionEvent), e.Session, e.Phase, e.From, e.To, e.Result, e.Attempt, e.Code, e.Message, e.Steps}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("record history of session %s and others: %w", entries[0].Session, err)
	}
	return string(text), nil
}

// Insert inserts any number of entries. $1 is the time.
const Insert = `INSERT INTO session_events (id, session_id, at, phase, from_status, to_status, result, attempt, code, message, steps)
SELECT w.id, w.session_id, $1::timestamptz, w.phase, w.from_status, w.to_status, w.result, w.attempt, w.code, w.message, w.steps
FROM json_to_recordset($2::json) AS w(id uuid, session_id uuid, phase text, from_status text, to_status text, result text,
  attempt bigint, code text, message text, steps jsonb)`

// Record writes the entries in one statement, however many there are.
func Record(ctx context.Context, tx *ent.Tx, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	rows, err := Rows(entries)
	if err != nil {
		return err
	}
	if err := store.Exactly(ctx, tx, len(entries), Insert, clock.Now(), rows); err != nil {
		return fmt.Errorf("record history of session %s and others: %w", entries[0].Session, err)
	}
	return nil
}

// Phase returns the phase of entries about a session in a state.
func Phase(s lifecycle.Status) string {
	switch s {
	case lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared:
		return "prepare"
	case lifecycle.Creating:
		return "create"
	case lifecycle.Running:
		return "run"
	}
	return "terminate"
}

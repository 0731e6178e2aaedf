package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

// SetSessionIdleExemptInput exempts a session from idle checks, or ends the exemption.
type SetSessionIdleExemptInput struct {
	ID     uuid.UUID
	Exempt bool
}

// SetSessionIdleExempt takes a session out of all idle checks, or back in. It requires an
// administrator of its domain; owners cannot exempt their own sessions.
func (s *Service) SetSessionIdleExempt(ctx context.Context, in SetSessionIdleExemptInput) (*SessionPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	sess, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	switch {
	case !v.AdminOf(sess.DomainID):
		return nil, problem.Forbidden("only an administrator of its domain may exempt a session from idle checks")
	case !v.Allows(access.TokenAdmin):
		return nil, problem.Forbidden("the access token lacks the scope %s", access.TokenAdmin)
	case sess.Status.Final():
		return nil, problem.Precondition("session %s is %s", sess.Name, sess.Status)
	case sess.IdleExempt == in.Exempt:
		return &SessionPayload{Session: sess}, nil
	}
	code, text := "idle_exempt", "idle checks do not apply to it from now on"
	if !in.Exempt {
		code, text = "idle_checked", "idle checks apply to it again"
	}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		up := tx.Session.UpdateOne(sess).SetIdleExempt(in.Exempt).AddVersion(1)
		if in.Exempt {
			up.ClearIdle()
		}
		if sess, err = up.Save(ctx); err != nil {
			return fmt.Errorf("exempt session %s: %w", in.ID, err)
		}
		return history.Record(ctx, tx, history.Entry{Session: sess.ID, Phase: "run", From: &sess.Status, To: sess.Status,
			Result: sessionevent.ResultInfo, Attempt: sess.Attempt, Code: code, Message: text})
	})
	if err != nil {
		return nil, err
	}
	s.changed(ctx, sess.ID)
	return &SessionPayload{Session: sess}, nil
}

// IdleNote describes the idle check that would end a running session next; nil: none. A warning
// becomes an entry of the session's history.
type IdleNote struct {
	Session *ent.Session
	Idle    *report.Idle
	Warning string
}

// NoteIdle stores the notes of sessions that still run and are not exempt.
func (s *Service) NoteIdle(ctx context.Context, epoch int64, notes []IdleNote) error {
	byID := make(map[uuid.UUID]IdleNote, len(notes))
	var ids, idles []string
	for _, n := range notes {
		text := ""
		if n.Idle != nil {
			b, err := json.Marshal(n.Idle)
			if err != nil {
				return fmt.Errorf("store the idle report of session %s: %w", n.Session.ID, err)
			}
			text = string(b)
		}
		byID[n.Session.ID] = n
		ids, idles = append(ids, n.Session.ID.String()), append(idles, text)
	}
	var changed []uuid.UUID
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, epoch); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `UPDATE sessions s SET idle = nullif(w.idle, '')::jsonb, version = s.version + 1
FROM unnest($1::text[]::uuid[], $2::text[]) AS w(id, idle)
WHERE s.id = w.id AND s.id = ANY ($1::text[]::uuid[]) AND s.status = $3 AND (w.idle = '' OR NOT s.idle_exempt) RETURNING s.id`, ids, idles, string(lifecycle.Running))
		if err != nil {
			return fmt.Errorf("store idle reports: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var id uuid.UUID
			if err := rows.Scan(&id); err != nil {
				return fmt.Errorf("store idle reports: %w", err)
			}
			changed = append(changed, id)
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("store idle reports: %w", err)
		}
		rows.Close()
		running := lifecycle.Running
		var lines []history.Entry
		for _, id := range changed {
			if n := byID[id]; n.Warning != "" {
				lines = append(lines, history.Entry{Session: id, Phase: "run", From: &running, To: running,
					Result: sessionevent.ResultInfo, Attempt: n.Session.Attempt, Code: "idle_warning", Message: n.Warning})
			}
		}
		return history.Record(ctx, tx, lines...)
	})
	if err != nil {
		return err
	}
	for _, id := range changed {
		s.changed(ctx, id)
	}
	return nil
}

// EndIdle ends an idle session. It returns Aborted if the session was used after the time that the
// caller knows, or was exempted.
func (s *Service) EndIdle(ctx context.Context, epoch int64, sess *ent.Session, used time.Time, message string) error {
	reason := session.TerminationReasonIdle
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, epoch); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, `SELECT FROM sessions s
WHERE s.id = $1 AND NOT s.idle_exempt AND NOT EXISTS (SELECT FROM idle_activities a WHERE a.session_id = s.id AND a.at > $2) FOR NO KEY UPDATE`, sess.ID, used)
		if err != nil {
			return fmt.Errorf("check session %s again: %w", sess.ID, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("session %s was used in the meantime: %w", sess.ID, errdefs.ErrAborted)
		}
		return move.Make(ctx, tx, move.Move{To: lifecycle.Terminating, Phase: "run", Result: sessionevent.ResultInfo,
			Code: "idle", Message: message, Reason: &reason}, sess)
	})
	if err != nil {
		return err
	}
	s.changed(ctx, sess.ID)
	return nil
}

package session

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

// TerminateSession requests the end of a session. A waiting session is cancelled at once; for
// others, the request is stored and the leader carries it out. A repeated request changes nothing.
func (s *Service) TerminateSession(ctx context.Context, in TerminateSessionInput) (*SessionPayload, error) {
	for range 5 { // the session may move on between our read and our write
		sess, err := s.find(ctx, in.ID, access.Delete)
		if err != nil {
			return nil, err
		}
		if sess.Status.Final() || sess.Status == lifecycle.Terminating && sess.RetryAt == nil && !force(in) {
			return &SessionPayload{Session: sess}, nil
		}
		if err := s.requestEnd(ctx, sess, in); err != nil {
			if isAborted(err) {
				continue
			}
			return nil, err
		}
		s.changed(ctx, sess.ID)
		sess, err = s.Client.Session.Get(ctx, in.ID)
		return &SessionPayload{Session: sess}, err
	}
	return nil, problem.Aborted("the session is being changed by other requests; try again")
}

func force(in TerminateSessionInput) bool { return in.Force != nil && *in.Force }

// requestEnd stores the user's request. With force, only the time for SIGKILL remains, and no grace
// period.
func (s *Service) requestEnd(ctx context.Context, sess *ent.Session, in TerminateSessionInput) error {
	force := force(in)
	reason := session.TerminationReasonUserRequested
	if sess.Status == lifecycle.Terminating && sess.RetryAt != nil {
		if err := s.stay(ctx, sess, reason); err != nil || !force {
			return err
		}
	}
	if sess.Status == lifecycle.Terminating {
		soon := clock.Now().Add(killTime)
		err := s.Client.Session.Update().AddVersion(1).SetDeadlineAt(soon).
			Where(session.ID(sess.ID), session.StatusEQ(lifecycle.Terminating), session.DeadlineAtGT(soon)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("shorten deadline: %w", err)
		}
		return nil
	}
	m := move.Move{To: lifecycle.Terminating, Result: sessionevent.ResultInfo, Phase: "terminate", Code: "user_requested",
		Message: "ended by its user", Reason: &reason}
	if sess.Status == lifecycle.Pending {
		m.To, m.Message = lifecycle.Cancelled, "cancelled before it started"
	}
	if in.Why != "" {
		m.Message = in.Why
	}
	if force {
		m.Code, m.Within = "forced", killTime
	}
	return s.end(ctx, sess, m)
}

// stay ends a session permanently that the platform would have started again.
func (s *Service) stay(ctx context.Context, sess *ent.Session, reason session.TerminationReason) error {
	return store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		const text = "ended by its user"
		n, err := tx.Session.Update().Where(session.ID(sess.ID), session.StatusEQ(lifecycle.Terminating), session.RetryAtNotNil()).
			ClearRetryAt().SetTerminationReason(reason).SetStatusMessage(text).AddVersion(1).Save(ctx)
		if err != nil {
			return fmt.Errorf("end session %s for good: %w", sess.ID, err)
		}
		if n == 0 {
			return fmt.Errorf("session %s was no longer going to start again: %w", sess.ID, errdefs.ErrAborted)
		}
		return history.Record(ctx, tx, history.Entry{Session: sess.ID, Phase: "terminate", From: &sess.Status, To: sess.Status,
			Result: sessionevent.ResultInfo, Attempt: sess.Attempt, Code: string(reason), Message: text})
	})
}

// EndOwned requests the end of all live sessions of a user, including waiting ones, and returns how
// many have not ended yet. A repeated request changes nothing.
func (s *Service) EndOwned(ctx context.Context, owner uuid.UUID, why string) (left int, err error) {
	ctx = viewer.SystemContext(ctx)
	live := s.Client.Session.Query().Where(session.OwnerID(owner), session.TerminatedAtIsNil())
	all, err := live.Clone().All(ctx)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	reason := session.TerminationReasonUserRequested
	for _, sess := range all {
		if sess.Status == lifecycle.Terminating {
			continue
		}
		to := lifecycle.Terminating
		if sess.Status == lifecycle.Pending {
			to = lifecycle.Cancelled
		}
		err := s.end(ctx, sess, move.Move{To: to, Result: sessionevent.ResultInfo, Phase: "terminate",
			Code: "owner_purged", Message: why, Reason: &reason})
		if err != nil && !isAborted(err) {
			return 0, fmt.Errorf("end session %s: %w", sess.Name, err)
		}
		s.changed(ctx, sess.ID)
	}
	return live.Count(ctx)
}

// StopAll requests the end of every session that runs or starts, and waits until they have ended or
// ctx has. Waiting sessions keep their place.
func (s *Service) StopAll(ctx context.Context) error {
	ctx = viewer.SystemContext(ctx)
	live := s.Client.Session.Query().Where(session.TerminatedAtIsNil(), session.StatusIn(lifecycle.Occupying...))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := live.Clone().All(ctx)
		if err != nil || len(all) == 0 {
			return err
		}
		for _, sess := range all {
			if sess.Status == lifecycle.Terminating {
				continue
			}
			reason := session.TerminationReasonShutdown
			err := s.end(ctx, sess, move.Move{To: lifecycle.Terminating, Result: sessionevent.ResultInfo, Phase: "terminate",
				Code: string(reason), Message: "the platform was stopped", Reason: &reason})
			if err != nil && !isAborted(err) {
				return fmt.Errorf("end session %s: %w", sess.Name, err)
			}
			s.changed(ctx, sess.ID)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

package session

import (
	"cmp"
	"context"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/session/move"
)

// commit makes a leader's move in a transaction of its own.
func (s *Service) commit(ctx context.Context, epoch int64, sess *ent.Session, m move.Move) error {
	m.Epoch = epoch
	if err := move.Alone(ctx, s.Client, m, sess); err != nil {
		if errdefs.IsAborted(err) {
			return cmp.Or(leader.Fenced(ctx, s.Client, epoch), err)
		}
		return err
	}
	s.noteMove(ctx, sess, m)
	return nil
}

// apply is commit, and publishes an event of the move.
func (s *Service) apply(ctx context.Context, epoch int64, sess *ent.Session, m move.Move) error {
	if err := s.commit(ctx, epoch, sess, m); err != nil {
		return err
	}
	s.changed(ctx, sess.ID)
	return nil
}

// end makes a move that any manager can make.
func (s *Service) end(ctx context.Context, sess *ent.Session, m move.Move) error {
	if err := move.Alone(ctx, s.Client, m, sess); err != nil {
		return err
	}
	s.noteMove(ctx, sess, m)
	return nil
}

// noteMove measures a move that was committed, and writes one line for each end.
func (s *Service) noteMove(ctx context.Context, from *ent.Session, m move.Move) {
	switch {
	case m.To == lifecycle.Running && from.Attempt == 1:
		s.meter.Start.Observe(max(clock.Now().Sub(from.CreatedAt), 0).Seconds())
	case m.To == lifecycle.Pending && slices.Contains(lifecycle.Occupying, from.Status) && from.StartedAt == nil:
		s.meter.Failed.Inc()
	case m.To.Final():
		reason := from.TerminationReason
		if m.Reason != nil {
			reason = m.Reason
		}
		why := ""
		if reason != nil {
			why = string(*reason)
		}
		s.meter.Ended.WithLabelValues(string(m.To), why).Inc()
		s.Logger.InfoContext(s.onBehalf(ctx, from.ID), "session ended", "session", from.ID, "status", m.To, "reason", why, "message", m.Message)
	}
}

// onBehalf returns a context with the id of the request that last changed a session, unless ctx has
// one: log lines of this manager and of the agents then name that request.
func (s *Service) onBehalf(ctx context.Context, id uuid.UUID) context.Context {
	if requestid.From(ctx) != "" {
		return ctx
	}
	if request := s.Bus.Request(id); request != "" {
		return requestid.With(ctx, request)
	}
	return ctx
}

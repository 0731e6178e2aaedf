package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/session/move"
)

const (
	// backoff is the pause after the first failed attempt; it doubles with each further one.
	backoff = 5 * time.Second
	// codeUnfit marks a start that failed because of a condition of the machine.
	codeUnfit = "agent_unfit"
	// agentUnfit is the reason that an agent gives for that.
	agentUnfit = "agent-unfit"
)

// expire handles a state whose deadline has passed.
func (s step) expire(ctx context.Context) error {
	if s.sess.Status == lifecycle.Terminating {
		s.stopKernels(ctx, time.Millisecond)
		switch {
		case s.allEnded():
			return s.finish(ctx, "")
		case s.cleaningUp():
			return s.extend(ctx)
		}
		return s.finish(ctx, "not every container ended in time")
	}
	text := fmt.Sprintf("%s took longer than %s", s.sess.Status, lifecycle.Deadline(s.sess.Status))
	return s.tryAgain(ctx, session.TerminationReasonDeadlineExceeded, "deadline", text, s.sess.Edges.Kernels...)
}

// tryAgain ends the present attempt. The next one is made later, if possible on other agents than
// those of the failed kernels. After the last attempt that the group allows, the session ends with
// the reason.
func (s step) tryAgain(ctx context.Context, reason session.TerminationReason, code, text string, failed ...*ent.Kernel) error {
	before, err := s.failures(ctx)
	if err != nil {
		return err
	}
	most := s.sess.Edges.ResourceGroup.MaxAttempts
	if before+1 >= most {
		return s.giveUp(ctx, reason, code, fmt.Sprintf("%s (attempt %d of %d)", text, before+1, most))
	}
	s.stopKernels(ctx, time.Millisecond)
	later := clock.Now().Add(time.Duration(before+1) * backoff)
	return s.move(ctx, move.Move{To: lifecycle.Pending, Phase: history.Phase(s.sess.Status), Result: sessionevent.ResultRetry,
		Code: code, Message: text, RetryAt: &later, Avoid: agentsOf(failed)})
}

// unfit takes the session off agents whose machines could not start it, because of missing disk
// space or another condition. The session waits for a better place for as long as necessary,
// because this is not a failure of the session.
func (s step) unfit(ctx context.Context, text string, failed ...*ent.Kernel) error {
	s.stopKernels(ctx, time.Millisecond)
	later := clock.Now().Add(backoff)
	return s.move(ctx, move.Move{To: lifecycle.Pending, Phase: history.Phase(s.sess.Status), Result: sessionevent.ResultInfo,
		Code: codeUnfit, Message: names(failed) + " could not start it: " + text, RetryAt: &later, Avoid: agentsOf(failed)})
}

// failures counts the attempts that failed since the session last ran, without those after which
// the platform moved it.
func (s step) failures(ctx context.Context) (int, error) {
	events, err := s.Client.SessionEvent.Query().Where(sessionevent.SessionID(s.sess.ID), sessionevent.Or(
		sessionevent.ToStatusEQ(lifecycle.Running),
		sessionevent.And(sessionevent.ToStatusEQ(lifecycle.Pending), sessionevent.FromStatusNEQ(lifecycle.Pending),
			sessionevent.ResultEQ(sessionevent.ResultRetry)),
	)).Order(sessionevent.ByAt(), sessionevent.ByID()).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("count failed attempts: %w", err)
	}
	n := 0
	for _, e := range events {
		if n++; *e.ToStatus == lifecycle.Running {
			n = 0
		}
	}
	return n, nil
}

// giveUp ends the session with the reason, because another attempt would fail in the same way.
func (s step) giveUp(ctx context.Context, reason session.TerminationReason, code, text string) error {
	s.stopKernels(ctx, time.Millisecond)
	return s.move(ctx, move.Move{To: lifecycle.Error, Phase: history.Phase(s.sess.Status), Result: sessionevent.ResultFailure,
		Code: code, Message: text, Reason: &reason, Outcome: session.ResultFailure})
}

// agentsOf returns the agents of kernels.
func agentsOf(kernels []*ent.Kernel) []uuid.UUID {
	var out []uuid.UUID
	for _, k := range kernels {
		if k.AgentID != nil && !slices.Contains(out, *k.AgentID) {
			out = append(out, *k.AgentID)
		}
	}
	return out
}

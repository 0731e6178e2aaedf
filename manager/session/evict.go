package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

// drainEvery is the interval at which drained agents are checked, and so the time after which
// owners are notified.
const drainEvery = 2 * time.Second

// Codes of the entries about a drain in the history of a session.
const (
	codeDraining = "draining"
	codeKept     = "drain_ended"
)

// followDrains notifies the owners of sessions on agents that are drained, until ctx ends. The
// reconciler evicts the sessions when the deadline has passed.
func (s *Service) followDrains(ctx context.Context, epoch int64) {
	tick := clock.NewTicker("drains", drainEvery)
	defer tick.Stop()
	known := map[uuid.UUID]*ent.Agent{}
	empty := map[uuid.UUID]bool{}
	for {
		if err := s.drains(ctx, epoch, known, empty); err != nil && ctx.Err() == nil && !isAborted(err) {
			s.Logger.Error("follow drained agents", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// drains checks once. known are the agents that were drained at the previous check, and empty those
// of them that had no sessions left.
func (s *Service) drains(ctx context.Context, epoch int64, known map[uuid.UUID]*ent.Agent, empty map[uuid.UUID]bool) error {
	all, err := s.Client.Agent.Query().Where(agent.DrainActionNotNil()).All(ctx)
	if err != nil {
		return fmt.Errorf("read drained agents: %w", err)
	}
	for id, a := range known {
		if slices.ContainsFunc(all, func(now *ent.Agent) bool { return now.ID == id }) {
			continue
		}
		if err := s.notifyOfDrain(ctx, epoch, a, codeKept, "agent "+a.Name+" is no longer drained"); err != nil {
			return err
		}
		delete(known, id)
		delete(empty, id)
	}
	for _, a := range all {
		known[a.ID] = a
		if err := s.notifyOfDrain(ctx, epoch, a, codeDraining, drainingText(a)); err != nil {
			return err
		}
		left, err := s.Client.Kernel.Query().Where(kernel.AgentID(a.ID), kernel.TerminatedAtIsNil()).Exist(ctx)
		if err != nil {
			return fmt.Errorf("count the sessions left on agent %s: %w", a.Name, err)
		}
		if !left && !empty[a.ID] {
			s.Logger.Info("agent drained", "agent", a.Name)
			s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: a.ID})
		}
		empty[a.ID] = !left
	}
	return nil
}

func drainingText(a *ent.Agent) string {
	text := "agent " + a.Name + " is being drained"
	if a.CordonReason != "" {
		text += " (" + a.CordonReason + ")"
	}
	at := a.DrainDeadline.UTC().Format("2006-01-02 15:04:05 UTC")
	if *a.DrainAction == agent.DrainActionReschedule {
		return text + ": what still runs at " + at + " is ended and starts again elsewhere"
	}
	return text + ": what still runs at " + at + " is ended"
}

// notifyOfDrain makes text the latest message about the drain of an agent for the sessions on it,
// in their histories and as their status message.
func (s *Service) notifyOfDrain(ctx context.Context, epoch int64, a *ent.Agent, code, text string) error {
	on, err := s.Client.Session.Query().Where(
		session.TerminatedAtIsNil(), session.StatusIn(lifecycle.Occupying...), session.StatusNEQ(lifecycle.Terminating),
		session.HasKernelsWith(kernel.AgentID(a.ID)),
	).WithHistory(func(q *ent.SessionEventQuery) {
		q.Where(sessionevent.CodeIn(codeDraining, codeKept)).Order(sessionevent.ByAt(), sessionevent.ByID())
	}).All(ctx)
	if err != nil {
		return fmt.Errorf("read sessions on agent %s: %w", a.Name, err)
	}
	for _, sess := range on {
		last := "" // in this run
		for _, e := range sess.Edges.History {
			if sess.ScheduledAt != nil && !e.At.Before(*sess.ScheduledAt) {
				last = e.Message
			}
		}
		if last == text || last == "" && code == codeKept {
			continue
		}
		if err := s.notify(ctx, epoch, sess, code, text); err != nil && !isAborted(err) {
			return err
		}
	}
	return nil
}

// notify gives the owner of a session a message without a change of state.
func (s *Service) notify(ctx context.Context, epoch int64, sess *ent.Session, code, text string) error {
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, epoch); err != nil {
			return err
		}
		n, err := tx.Session.Update().Where(session.ID(sess.ID), session.StatusEQ(sess.Status)).
			SetStatusMessage(text).AddVersion(1).Save(ctx)
		if err != nil || n == 0 { // its state has changed; the next check notifies it
			return err
		}
		return history.Record(ctx, tx, history.Entry{Session: sess.ID, Phase: history.Phase(sess.Status), From: &sess.Status, To: sess.Status,
			Result: sessionevent.ResultInfo, Attempt: sess.Attempt, Code: code, Message: text})
	})
	if err != nil {
		return fmt.Errorf("notify the owner of session %s: %w", sess.ID, err)
	}
	s.changed(ctx, sess.ID)
	return nil
}

// displacing is the move with which the platform ends a session. If the session is to start again,
// it returns to pending after its containers have ended, and this does not count as a failure of
// the session.
func displacing(reason session.TerminationReason, restarts bool, text string) move.Move {
	m := move.Move{To: lifecycle.Terminating, Phase: "run", Result: sessionevent.ResultInfo, Code: string(reason), Message: text, Reason: &reason}
	if restarts {
		now := clock.Now()
		m.RetryAt = &now
	}
	return m
}

// displace takes a session off agents where it cannot stay: lost agents, as the resource group
// says, and agents whose drain has reached its deadline.
func (s step) displace(ctx context.Context) (bool, error) {
	if s.sess.Status != lifecycle.Running && !s.starting() {
		return false, nil
	}
	if lost := s.on(func(a *ent.Agent) bool { return a.Status != agent.StatusAlive }); len(lost) > 0 {
		if s.starting() {
			return true, s.tryAgain(ctx, session.TerminationReasonAgentLost, "agent_lost",
				names(lost)+" was lost before the session started", lost...)
		}
		if moved, err := s.lose(ctx); moved || err != nil {
			return moved, err
		}
	}
	due := s.on(func(a *ent.Agent) bool { return a.DrainDeadline != nil && !a.DrainDeadline.After(clock.Now()) })
	if len(due) == 0 {
		return false, nil
	}
	restarts := *due[0].Edges.Agent.DrainAction == agent.DrainActionReschedule
	m := displacing(session.TerminationReasonDrained, restarts, drainedText(due[0].Edges.Agent, restarts))
	if s.starting() && restarts {
		s.stopKernels(ctx, time.Millisecond)
		m = move.Move{To: lifecycle.Pending, Result: sessionevent.ResultInfo, Code: m.Code, Message: m.Message, Avoid: agentsOf(due)}
	}
	m.Phase = history.Phase(s.sess.Status)
	return true, s.move(ctx, m)
}

func drainedText(a *ent.Agent, restarts bool) string {
	text := "agent " + a.Name + " was drained"
	if a.CordonReason != "" {
		text += " (" + a.CordonReason + ")"
	}
	if restarts {
		text += "; the session starts again elsewhere"
	}
	return text
}

// lose handles a running session whose agent has been lost for longer than the resource group
// allows, or was declared gone. All of its kernels end together.
func (s step) lose(ctx context.Context) (bool, error) {
	g := s.sess.Edges.ResourceGroup
	lostAfter := time.Duration(g.LostAfter) * time.Second
	gone := s.on(func(a *ent.Agent) bool { return a.Status == agent.StatusTerminated })
	text := names(gone) + " is gone for good"
	if len(gone) == 0 && g.LostPolicy != resourcegroup.LostPolicyWait && !s.Agents.Disrupted(g.ID) {
		gone = s.on(func(a *ent.Agent) bool {
			return a.Status == agent.StatusLost && a.LostAt != nil && !clock.Now().Before(a.LostAt.Add(lostAfter))
		})
		text = fmt.Sprintf("%s has been lost for %s", names(gone), lostAfter)
	}
	if len(gone) == 0 {
		return false, nil
	}
	restarts := g.LostPolicy == resourcegroup.LostPolicyReschedule
	if restarts {
		text += "; the session starts again elsewhere"
	}
	return true, s.move(ctx, displacing(session.TerminationReasonAgentLost, restarts, text))
}

// startAgain ends the present run, and lets the session wait for another place.
func (s step) startAgain(ctx context.Context) error {
	reason := *s.sess.TerminationReason
	left := s.on(func(a *ent.Agent) bool {
		return a.Status != agent.StatusAlive || reason == session.TerminationReasonDrained && a.DrainAction != nil
	})
	return s.move(ctx, move.Move{To: lifecycle.Pending, Phase: "terminate", Result: sessionevent.ResultInfo,
		Code: string(reason), Message: s.sess.StatusMessage, Avoid: agentsOf(left)})
}

// starting reports whether the session is between its placement and its run.
func (s step) starting() bool {
	return slices.Contains([]lifecycle.Status{lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating}, s.sess.Status)
}

// on returns the kernels on agents that satisfy a condition.
func (s step) on(is func(*ent.Agent) bool) []*ent.Kernel {
	var out []*ent.Kernel
	for _, k := range s.sess.Edges.Kernels {
		if a := k.Edges.Agent; a != nil && is(a) {
			out = append(out, k)
		}
	}
	return out
}

// names returns the names of the kernels' agents as text.
func names(kernels []*ent.Kernel) string {
	var all []string
	for _, k := range kernels {
		if name := k.Edges.Agent.Name; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return "agent " + strings.Join(all, ", ")
}

// Preempt ends sessions, in the caller's transaction, to make room for a waiting session. If they
// are to start again, they return to the queue, and this does not count as a failure. Their message
// names the other session only if it has the same owner.
func Preempt(ctx context.Context, tx *ent.Tx, other *ent.Session, victims []*ent.Session, restarts bool) error {
	if err := move.LockRows(ctx, tx, victims...); err != nil {
		return err
	}
	for _, v := range victims {
		text := fmt.Sprintf("it was preempted by a session of priority %d; its own priority is %d", other.Priority, v.Priority)
		if v.OwnerID == other.OwnerID {
			text = fmt.Sprintf("it was preempted by your session %s of priority %d; its own priority is %d", other.Name, other.Priority, v.Priority)
		}
		if restarts {
			text += "; it starts again when its turn comes"
		}
		if err := move.Make(ctx, tx, displacing(session.TerminationReasonPreempted, restarts, text), v); err != nil {
			return err
		}
	}
	return nil
}

package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/store"
)

// drainEvery is how often agents that are drained are looked at: owners learn of
// it that soon.
const drainEvery = 2 * time.Second

// Codes of the entries that tell an owner of a drain.
const (
	codeDraining = "draining"
	codeKept     = "drain_ended"
)

// followDrains tells the owners of what runs on agents that are drained, until
// ctx ends. What is due is displaced by the sessions' own steps.
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

// drains looks once. Known are the agents that were drained at the last look, and
// empty those of them that nothing was left on.
func (s *Service) drains(ctx context.Context, epoch int64, known map[uuid.UUID]*ent.Agent, empty map[uuid.UUID]bool) error {
	all, err := s.Client.Agent.Query().Where(agent.DrainActionNotNil()).All(ctx)
	if err != nil {
		return fmt.Errorf("read drained agents: %w", err)
	}
	for id, a := range known {
		if slices.ContainsFunc(all, func(now *ent.Agent) bool { return now.ID == id }) {
			continue
		}
		if err := s.tellDrain(ctx, epoch, a, codeKept, "agent "+a.Name+" is no longer drained"); err != nil {
			return err
		}
		delete(known, id)
		delete(empty, id)
	}
	for _, a := range all {
		known[a.ID] = a
		if err := s.tellDrain(ctx, epoch, a, codeDraining, drainingText(a)); err != nil {
			return err
		}
		left, err := s.Client.Kernel.Query().Where(kernel.AgentID(a.ID), kernel.TerminatedAtIsNil()).Exist(ctx)
		if err != nil {
			return fmt.Errorf("look what is left on agent %s: %w", a.Name, err)
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
		return text + ": what still runs at " + at + " is ended and starts anew elsewhere"
	}
	return text + ": what still runs at " + at + " is ended"
}

// tellDrain makes text the last that the sessions on an agent were told of its
// drain, in their histories and as their message.
func (s *Service) tellDrain(ctx context.Context, epoch int64, a *ent.Agent, code, text string) error {
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
		if err := s.tell(ctx, epoch, sess, code, text); err != nil && !isAborted(err) {
			return err
		}
	}
	return nil
}

// tell gives the owner of a session a message that changes no state.
func (s *Service) tell(ctx context.Context, epoch int64, sess *ent.Session, code, text string) error {
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, epoch); err != nil {
			return err
		}
		n, err := tx.Session.Update().Where(session.ID(sess.ID), session.StatusEQ(sess.Status)).
			SetStatusMessage(text).AddVersion(1).Save(ctx)
		if err != nil || n == 0 { // it moved on, and is told at the next look
			return err
		}
		return record(ctx, tx, entry{session: sess.ID, phase: phaseOf(sess.Status), from: &sess.Status, to: sess.Status,
			result: sessionevent.ResultInfo, attempt: sess.Attempt, code: code, message: text})
	})
	if err != nil {
		return fmt.Errorf("tell the owner of session %s: %w", sess.ID, err)
	}
	s.changed(ctx, sess.ID)
	return nil
}

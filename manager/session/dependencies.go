package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiondependency"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

const (
	maxNeeded  = 32  // sessions that one depends on
	maxAgents  = 32  // that a request can name
	openAtOnce = 500 // dependencies read at once
)

// checkNeeded finds the sessions that must succeed before the new one starts.
func (s *Service) checkNeeded(ctx context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	if len(in.DependsOn) > maxNeeded {
		return problem.Invalid("dependsOn", "has %d sessions, which is too many", len(in.DependsOn)).WithLimit(fmt.Sprint(maxNeeded))
	}
	for i, id := range in.DependsOn {
		field := fmt.Sprintf("dependsOn[%d]", i)
		if slices.Contains(in.DependsOn[:i], id) {
			return problem.Invalid(field, "is named twice")
		}
		needed, err := s.Client.Session.Get(ctx, id)
		if err != nil {
			return permit.Missing(err, "session", field)
		}
		if failed(needed) {
			return problem.Precondition("session %s did not succeed, so nothing can start after it", needed.Name).WithField(field)
		}
		spec.needed = append(spec.needed, needed)
	}
	return nil
}

// succeeded and failed report how a session ended. Before its end, both are false.
func succeeded(s *ent.Session) bool { return s.Status.Final() && s.Result == session.ResultSuccess }
func failed(s *ent.Session) bool    { return s.Status.Final() && s.Result != session.ResultSuccess }

// followUp resolves dependencies until ctx ends, so that neither a lost event nor the end
// of a manager keeps a session waiting.
func (s *Service) followUp(ctx context.Context, epoch int64) {
	tick := clock.NewTicker("dependencies", passEvery)
	defer tick.Stop()
	for {
		if err := s.satisfy(ctx, epoch); err != nil && ctx.Err() == nil && !isAborted(err) {
			s.Logger.Error("resolve dependencies", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// satisfy reads the open dependencies, or those on some sessions. It marks those on
// sessions that succeeded as satisfied, and cancels sessions that depend on one that
// failed or no longer exists.
func (s *Service) satisfy(ctx context.Context, epoch int64, on ...uuid.UUID) error {
	q := s.Client.SessionDependency.Query().Where(sessiondependency.Satisfied(false),
		sessiondependency.HasSessionWith(session.TerminatedAtIsNil(), session.StatusEQ(lifecycle.Pending)),
		sessiondependency.Or(sessiondependency.NeededIDIsNil(), sessiondependency.HasNeededWith(session.StatusIn(final...)))).
		WithSession().WithNeeded().Order(sessiondependency.ByID()).Limit(openAtOnce)
	if len(on) > 0 {
		q.Where(sessiondependency.NeededIDIn(on...))
	}
	open, err := q.All(ctx)
	if err != nil {
		return fmt.Errorf("read dependencies: %w", err)
	}
	var done, dependents []uuid.UUID
	for _, d := range open {
		if n := d.Edges.Needed; n != nil && succeeded(n) {
			done, dependents = append(done, d.ID), append(dependents, d.SessionID)
			continue
		}
		if err := s.cancelAfter(ctx, epoch, d); err != nil && !isAborted(err) {
			return err
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := s.Client.SessionDependency.Update().Where(sessiondependency.IDIn(done...)).SetSatisfied(true).Exec(ctx); err != nil {
		return fmt.Errorf("satisfy dependencies: %w", err)
	}
	for _, id := range dependents {
		s.changed(ctx, id)
	}
	return nil
}

// final are the states in which a session has ended.
var final = slices.DeleteFunc(slices.Clone(lifecycle.All), func(s lifecycle.Status) bool { return !s.Final() })

// cancelAfter cancels a session that depends on one that will never succeed.
func (s *Service) cancelAfter(ctx context.Context, epoch int64, d *ent.SessionDependency) error {
	reason := session.TerminationReasonDependencyFailed
	how := "is gone"
	if n := d.Edges.Needed; n != nil {
		how = "did not succeed"
		if n.Status == lifecycle.Cancelled || n.TerminationReason != nil && *n.TerminationReason == session.TerminationReasonUserRequested {
			how = "was ended before it succeeded"
		}
	}
	return s.apply(ctx, epoch, d.Edges.Session, move{to: lifecycle.Cancelled, result: sessionevent.ResultFailure, phase: "schedule",
		code: string(reason), message: fmt.Sprintf("session %s, after which it was to start, %s", d.Name, how), reason: &reason})
}

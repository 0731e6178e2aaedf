package session

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	maxAhead   = 365 * 24 * time.Hour // of a start
	maxNeeded  = 32                   // sessions that one depends on
	maxAgents  = 32                   // that one asks for
	openAtOnce = 500                  // dependencies looked at in one go
)

// checkWhen looks at what a session has to wait for: a time, and others.
func (s *Service) checkWhen(ctx context.Context, _ *viewer.Viewer, in CreateSessionInput, w *wish) error {
	if in.StartsAt != nil {
		if w.kind != session.TypeBatch {
			return problem.Invalid("startsAt", "only a batch session can start later")
		}
		now := clock.Now()
		if !in.StartsAt.After(now) || in.StartsAt.After(now.Add(maxAhead)) {
			return problem.Invalid("startsAt", "must be in the future, at most 365 days ahead").WithLimit(now.Add(maxAhead).Format(time.RFC3339))
		}
		at := in.StartsAt.UTC().Truncate(time.Microsecond)
		w.startsAt = &at
	}
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
		w.needed = append(w.needed, needed)
	}
	return nil
}

// succeeded and failed tell how a session ended; of one that lives, neither is true.
func succeeded(s *ent.Session) bool { return s.Status.Final() && s.Result == session.ResultSuccess }
func failed(s *ent.Session) bool    { return s.Status.Final() && s.Result != session.ResultSuccess }

// storeNeeded writes what a new session depends on.
func storeNeeded(ctx context.Context, tx *ent.Tx, id uuid.UUID, needed []*ent.Session) error {
	for _, n := range needed {
		if err := tx.SessionDependency.Create().SetSessionID(id).SetNeededID(n.ID).SetName(n.Name).
			SetSatisfied(succeeded(n)).Exec(ctx); err != nil {
			return fmt.Errorf("store dependency on %s: %w", n.Name, err)
		}
	}
	return nil
}

// followUp keeps what waits for other sessions up to date, until ctx ends, so
// that a lost event or a manager's death holds nothing up.
func (s *Service) followUp(ctx context.Context, epoch int64) {
	tick := time.NewTicker(passEvery)
	defer tick.Stop()
	for {
		if err := s.resolve(ctx, epoch); err != nil && ctx.Err() == nil && !isAborted(err) {
			s.Logger.Error("resolve dependencies", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// resolve looks at the open dependencies, or at those on one session. Those on
// what succeeded are satisfied; who needs what did not, or what is gone, is
// cancelled.
func (s *Service) resolve(ctx context.Context, epoch int64, on ...uuid.UUID) error {
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

// cancelAfter ends a session that waits for what will never succeed.
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

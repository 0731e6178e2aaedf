package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiondependency"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

const (
	maxNeeded  = 32  // dependencies of a session
	maxAgents  = 32  // that a request can name
	openAtOnce = 500 // dependencies that are read together
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
		one, err := s.findNeeded(ctx, field, id)
		if err != nil {
			return err
		}
		spec.needed = append(spec.needed, *one)
	}
	return nil
}

// needed is a session or an array that must succeed before another session starts.
type needed struct {
	id    uuid.UUID
	array bool
	name  string
	done  bool
}

// findNeeded finds a session or an array on which another session depends.
func (s *Service) findNeeded(ctx context.Context, field string, one uuid.UUID) (*needed, error) {
	if id.KindOf(one) == id.SessionArray {
		return s.findNeededArray(ctx, field, one)
	}
	row, err := s.Client.Session.Get(ctx, one)
	if err != nil {
		return nil, permit.Missing(err, "session", field)
	}
	if failed(row) {
		return nil, problem.Precondition("session %s did not succeed, so nothing can start after it", row.Name).WithField(field)
	}
	return &needed{id: one, name: row.Name, done: succeeded(row)}, nil
}

// findNeededArray is findNeeded for an array. One whose members have all ended must have
// succeeded.
func (s *Service) findNeededArray(ctx context.Context, field string, one uuid.UUID) (*needed, error) {
	row, err := s.Client.SessionArray.Get(ctx, one)
	if err != nil {
		return nil, permit.Missing(err, "array", field)
	}
	counts, err := s.ArrayCounts(ctx, []uuid.UUID{one})
	if err != nil {
		return nil, err
	}
	c := counts[one]
	if c.live() == 0 && c.Succeeded < row.Size {
		return nil, problem.Precondition("%d of %d members of array %s did not succeed, so nothing can start after it", row.Size-c.Succeeded, row.Size, row.Name).WithField(field)
	}
	return &needed{id: one, array: true, name: row.Name, done: c.Succeeded == row.Size}, nil
}

// row returns the row of a dependency, without the session that has it.
func (n needed) row(tx *ent.Tx) *ent.SessionDependencyCreate {
	row := tx.SessionDependency.Create().SetName(n.name).SetSatisfied(n.done)
	if n.array {
		return row.SetNeededArrayID(n.id)
	}
	return row.SetNeededID(n.id)
}

// succeeded and failed report how a session ended. Before its end, both are false.
func succeeded(s *ent.Session) bool { return s.Status.Final() && s.Result == session.ResultSuccess }
func failed(s *ent.Session) bool    { return s.Status.Final() && s.Result != session.ResultSuccess }

// followUp resolves dependencies until ctx ends, so that no session waits forever because of a lost
// event or the end of a manager.
func (s *Service) followUp(ctx context.Context, epoch int64) {
	tick := clock.NewTicker("dependencies", passEvery)
	defer tick.Stop()
	for {
		if err := errors.Join(s.satisfy(ctx, epoch), s.satisfyArrays(ctx, epoch)); err != nil && ctx.Err() == nil && !isAborted(err) {
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
	q := s.Client.SessionDependency.Query().Where(sessiondependency.Satisfied(false), sessiondependency.NeededArrayIDIsNil(),
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

// cancelAfter cancels a session that depends on a session that will never succeed.
func (s *Service) cancelAfter(ctx context.Context, epoch int64, d *ent.SessionDependency) error {
	how := "is gone"
	if n := d.Edges.Needed; n != nil {
		how = "did not succeed"
		if n.Status == lifecycle.Cancelled || n.TerminationReason != nil && *n.TerminationReason == session.TerminationReasonUserRequested {
			how = "was ended before it succeeded"
		}
	}
	return s.cancelFor(ctx, epoch, d, fmt.Sprintf("it depends on session %s, which %s", d.Name, how))
}

func (s *Service) cancelFor(ctx context.Context, epoch int64, d *ent.SessionDependency, why string) error {
	reason := session.TerminationReasonDependencyFailed
	return s.apply(ctx, epoch, d.Edges.Session, move.Move{To: lifecycle.Cancelled, Result: sessionevent.ResultFailure, Phase: "schedule",
		Code: string(reason), Message: why, Reason: &reason})
}

// satisfyArrays is satisfy for the dependencies on arrays, or on some arrays: an array
// has succeeded when all of its members have, and failed when all have ended and one did not
// succeed, so that members can be retried while others run.
func (s *Service) satisfyArrays(ctx context.Context, epoch int64, on ...uuid.UUID) error {
	q := s.Client.SessionDependency.Query().Where(sessiondependency.Satisfied(false), sessiondependency.NeededArrayIDNotNil(),
		sessiondependency.HasSessionWith(session.TerminatedAtIsNil(), session.StatusEQ(lifecycle.Pending))).
		WithSession().WithNeededArray().Order(sessiondependency.ByID()).Limit(openAtOnce)
	if len(on) > 0 {
		q.Where(sessiondependency.NeededArrayIDIn(on...))
	}
	open, err := q.All(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	arrays := map[uuid.UUID]bool{}
	for _, d := range open {
		arrays[*d.NeededArrayID] = true
	}
	counts, err := s.ArrayCounts(ctx, store.IDs(arrays))
	if err != nil {
		return err
	}
	for _, d := range open {
		c, size := counts[*d.NeededArrayID], d.Edges.NeededArray.Size
		switch {
		case c.live() > 0:
			continue
		case c.Succeeded == size:
			if err := s.Client.SessionDependency.UpdateOne(d).SetSatisfied(true).Exec(ctx); err != nil {
				return fmt.Errorf("satisfy dependency on array %s: %w", d.Name, err)
			}
			s.changed(ctx, d.SessionID)
			continue
		}
		why := fmt.Sprintf("it depends on array %s, of which %d of %d members did not succeed", d.Name, size-c.Succeeded, size)
		if err := s.cancelFor(ctx, epoch, d, why); err != nil && !isAborted(err) {
			return err
		}
	}
	return nil
}

// freed wakes the sessions that wait for the end of a session: those that depend on it or on its
// array, and the session that replaces it.
func (s *Service) freed(ctx context.Context, epoch int64, sess *ent.Session) error {
	if sess.Replaced {
		next, err := s.Client.Session.Query().Where(session.RestartOfID(sess.ID), session.StatusEQ(lifecycle.Pending)).IDs(ctx)
		if err != nil {
			return fmt.Errorf("find the session that replaces %s: %w", sess.ID, err)
		}
		for _, id := range next {
			s.changed(ctx, id)
		}
	}
	if sess.ArrayID != nil {
		if err := s.satisfyArrays(ctx, epoch, *sess.ArrayID); err != nil {
			return err
		}
	}
	return s.satisfy(ctx, epoch, sess.ID)
}

package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/leader"
)

const (
	// atOnce limits the concurrent tasks, ofKind those of one kind, so that many deletions do
	// not delay a clone or the purge of a user.
	atOnce, ofKind = 16, 4
	maxAttempts    = 5
	lookEvery      = 5 * time.Second // for tasks whose pause has ended, and lost events
)

// run is a task that this process runs.
type run struct {
	kind string
	stop context.CancelCauseFunc
}

// Lead runs tasks until ctx ends. A task that runs then keeps its state; the next leader
// continues it.
func (s *Service) Lead(ctx context.Context, epoch int64) {
	ctx = viewer.SystemContext(ctx)
	news := s.Bus.Gather(ctx, []event.Topic{event.Task})
	tick := clock.NewTicker("tasks", lookEvery)
	defer tick.Stop()
	var runs sync.WaitGroup
	defer runs.Wait()
	ended := make(chan struct{}, 1)
	for {
		if err := s.stopCancelled(ctx); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "look for cancelled tasks", "error", err)
		}
		for s.start(ctx, epoch, &runs, ended) {
		}
		select {
		case <-ctx.Done():
			return
		case <-news.Wake():
			news.Take() // one pass covers many events
		case <-ended:
		case <-tick.C:
		}
	}
}

// start starts the oldest task that can run, and reports whether there was one.
func (s *Service) start(ctx context.Context, epoch int64, runs *sync.WaitGroup, ended chan<- struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	t, err := s.claim(ctx, epoch)
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "claim task", "error", err)
	}
	if err != nil || t == nil {
		return false
	}
	running, stop := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.active[t.ID] = run{t.Kind, stop}
	s.mu.Unlock()
	runs.Go(func() {
		defer stop(nil)
		s.attempt(ctx, running, t, epoch)
		s.mu.Lock()
		delete(s.active, t.ID)
		s.mu.Unlock()
		select {
		case ended <- struct{}{}:
		default:
		}
	})
	return true
}

// attempt runs a task once. running ends before ctx if the task is cancelled.
func (s *Service) attempt(ctx, running context.Context, t *ent.Task, epoch int64) {
	s.Wake(ctx, t.ID)
	p := &Progress{s: s, task: t, epoch: epoch}
	err := s.kinds[t.Kind].Run(running, p, t.Input)
	if running.Err() != nil || errors.Is(err, errStopped) {
		return
	}
	if err := s.settle(ctx, p, err); err != nil {
		if ctx.Err() == nil && !errors.Is(err, errStopped) {
			s.Logger.WarnContext(ctx, "settle task", "task", t.ID, "error", err)
		}
		return
	}
	s.Wake(ctx, t.ID)
}

// stopCancelled ends the runs of cancelled tasks.
func (s *Service) stopCancelled(ctx context.Context) error {
	s.mu.Lock()
	active := maps.Clone(s.active)
	s.mu.Unlock()
	if len(active) == 0 {
		return nil
	}
	gone, err := s.Client.Task.Query().
		Where(task.IDIn(slices.Collect(maps.Keys(active))...), task.StatusEQ(task.StatusCancelled)).IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range gone {
		active[id].stop(errStopped)
	}
	return nil
}

// Runs reports whether this process is working on a task. This can be true for a moment after
// the task was cancelled.
func (s *Service) Runs(id uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.active[id]
	return is
}

// claim takes the oldest task that can run. A task that is marked as running, but not by this
// process, belonged to an earlier leader.
func (s *Service) claim(ctx context.Context, epoch int64) (t *ent.Task, err error) {
	s.mu.Lock()
	active := slices.Collect(maps.Keys(s.active))
	busy := map[string]int{}
	narrow := 0 // tasks that count toward atOnce
	for _, r := range s.active {
		busy[r.kind]++
		if _, own := s.limit(r.kind); !own {
			narrow++
		}
	}
	s.mu.Unlock()
	var kinds []string
	for kind := range s.kinds {
		limit, own := s.limit(kind)
		if busy[kind] < limit && (own || narrow < atOnce) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return nil, nil
	}
	err = s.fenced(ctx, epoch, func(tx *ent.Tx) error {
		t, err = tx.Task.Query().Where(
			task.KindIn(kinds...),
			task.StatusIn(task.StatusWaiting, task.StatusScheduled, task.StatusRunning),
			task.IDNotIn(active...),
			task.Or(task.RetryAtIsNil(), task.RetryAtLTE(clock.Now())),
		).Order(task.ByCreatedAt(), task.ByID()).ForUpdate(sql.WithLockAction(sql.SkipLocked)).First(ctx)
		if ent.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for tasks: %w", err)
		}
		up := t.Update().SetStatus(task.StatusRunning).AddAttempt(1).ClearRetryAt()
		if t.StartedAt == nil {
			up.SetStartedAt(clock.Now())
		}
		t, err = up.Save(ctx)
		return err
	})
	if err != nil || t == nil {
		return nil, err
	}
	return t, nil
}

// limit returns the number of concurrent tasks of a kind, and reports whether the kind has a limit of its own.
func (s *Service) limit(kind string) (n int, own bool) {
	if w, ok := s.kinds[kind].(Wide); ok {
		return w.AtOnce(), true
	}
	return ofKind, false
}

// settle stores the result of an attempt.
func (s *Service) settle(ctx context.Context, p *Progress, failure error) error {
	return p.update(ctx, func(up *ent.TaskUpdate) {
		if failure == nil {
			up.SetStatus(task.StatusDone).SetMessage(p.remark).SetDone(p.task.Total).SetEndedAt(clock.Now())
			return
		}
		if w := (*waiting)(nil); errors.As(failure, &w) {
			up.SetStatus(task.StatusWaiting).SetMessage(w.what).AddAttempt(-1).SetRetryAt(clock.Now().Add(s.Pause))
			return
		}
		if at := (*scheduled)(nil); errors.As(failure, &at) {
			up.SetStatus(task.StatusScheduled).SetMessage(at.what).AddAttempt(-1).SetRetryAt(at.at)
			return
		}
		said, known := problem.From(failure)
		s.Logger.WarnContext(ctx, "task failed", "task", p.task.ID, "kind", p.task.Kind, "attempt", p.task.Attempt, "error", failure)
		up.SetMessage(said.Message)
		if known && Hopeless(said.Code) || p.task.Attempt >= maxAttempts {
			up.SetStatus(task.StatusFailed).SetEndedAt(clock.Now())
			return
		}
		up.SetStatus(task.StatusWaiting).SetRetryAt(clock.Now().Add(s.Backoff(p.task.Attempt)))
	})
}

// Hopeless reports whether an error is permanent, so that retries do not help.
func Hopeless(code string) bool {
	return slices.Contains([]string{problem.CodeInvalidArgument, problem.CodeNotFound, problem.CodeFailedPrecondition,
		problem.CodePermissionDenied, problem.CodeAlreadyExists}, code)
}

// Wait returns the error of a run that can only continue later. Its text becomes the task's
// message, and the run does not count as a failed attempt.
func Wait(format string, args ...any) error { return &waiting{fmt.Sprintf(format, args...)} }

type waiting struct{ what string }

func (w *waiting) Error() string { return w.what }

// At returns the error of a run that continues at a time, with its saved state. Its text becomes the task's message,
// and the run does not count as a failed attempt.
func At(at time.Time, format string, args ...any) error {
	return &scheduled{fmt.Sprintf(format, args...), at}
}

type scheduled struct {
	what string
	at   time.Time
}

func (s *scheduled) Error() string { return s.what }

// errStopped ends the run of a cancelled task.
var errStopped = errors.New("the task was cancelled")

// fenced runs f in a transaction that fails if the leader was replaced.
func (s *Service) fenced(ctx context.Context, epoch int64, f func(tx *ent.Tx) error) error {
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // no effect after a commit
	if err := leader.Fence(ctx, tx, epoch); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

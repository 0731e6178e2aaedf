package task

import (
	"context"
	"encoding/json"
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
)

const (
	workers     = 2
	maxAttempts = 5
	lookEvery   = 5 * time.Second // for tasks whose wait is over, and lost events
)

// Lead runs tasks until ctx ends. A task that runs then stays running; the next
// leader goes on with it.
func (s *Service) Lead(ctx context.Context, epoch int64) {
	ctx = viewer.SystemContext(ctx)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { s.work(ctx, epoch) })
	}
	wg.Wait()
}

func (s *Service) work(ctx context.Context, epoch int64) {
	events := s.Bus.Subscribe(ctx, event.Task)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for ctx.Err() == nil && s.next(ctx, epoch) {
		}
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				return
			}
		case <-tick.C:
		}
	}
}

// next runs one task, and tells whether there was one.
func (s *Service) next(ctx context.Context, epoch int64) bool {
	t, err := s.claim(ctx, epoch)
	if err != nil {
		if ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "claim task", "error", err)
		}
		return false
	}
	if t == nil {
		return false
	}
	defer s.release(t.ID)
	s.Wake(ctx, t.ID)
	p := &Progress{s: s, task: t, epoch: epoch}
	err = s.kinds[t.Kind].Run(ctx, p, t.Input)
	if ctx.Err() != nil || errors.Is(err, errStopped) {
		return ctx.Err() == nil
	}
	if err := s.settle(ctx, p, err); err != nil {
		s.Logger.WarnContext(ctx, "settle task", "task", t.ID, "error", err)
		return false
	}
	s.Wake(ctx, t.ID)
	return true
}

// claim takes the oldest task that may run. One that is running though nobody
// here runs it was left by a leader that is gone.
func (s *Service) claim(ctx context.Context, epoch int64) (t *ent.Task, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.fenced(ctx, epoch, func(tx *ent.Tx) error {
		t, err = tx.Task.Query().Where(
			task.KindIn(slices.Collect(maps.Keys(s.kinds))...),
			task.StatusIn(task.StatusWaiting, task.StatusRunning),
			task.IDNotIn(slices.Collect(maps.Keys(s.active))...),
			task.Or(task.RetryAtIsNil(), task.RetryAtLTE(clock.Now())),
		).Order(task.ByCreatedAt()).Limit(1).ForUpdate(sql.WithLockAction(sql.SkipLocked)).Only(ctx)
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
	s.active[t.ID] = true
	return t, nil
}

func (s *Service) release(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, id)
}

// settle notes how an attempt ended.
func (s *Service) settle(ctx context.Context, p *Progress, failure error) error {
	return p.update(ctx, func(up *ent.TaskUpdate) {
		if failure == nil {
			up.SetStatus(task.StatusDone).SetMessage("").SetDone(p.task.Total).SetEndedAt(clock.Now())
			return
		}
		if w := (*waiting)(nil); errors.As(failure, &w) {
			up.SetStatus(task.StatusWaiting).SetMessage(w.what).AddAttempt(-1).SetRetryAt(clock.Now().Add(s.Pause))
			return
		}
		said, known := problem.From(failure)
		s.Logger.WarnContext(ctx, "task failed", "task", p.task.ID, "kind", p.task.Kind, "attempt", p.task.Attempt, "error", failure)
		up.SetMessage(said.Message)
		if known && hopeless(said.Code) || p.task.Attempt >= maxAttempts {
			up.SetStatus(task.StatusFailed).SetEndedAt(clock.Now())
			return
		}
		up.SetStatus(task.StatusWaiting).SetRetryAt(clock.Now().Add(s.Backoff(p.task.Attempt)))
	})
}

// hopeless tells which errors no repetition cures.
func hopeless(code string) bool {
	return slices.Contains([]string{problem.CodeInvalidArgument, problem.CodeNotFound, problem.CodeFailedPrecondition,
		problem.CodePermissionDenied, problem.CodeAlreadyExists}, code)
}

// Wait is what a run returns when it can only go on later: what it waits for is
// the task's message meanwhile, and the run is no failed attempt.
func Wait(format string, args ...any) error { return &waiting{fmt.Sprintf(format, args...)} }

type waiting struct{ what string }

func (w *waiting) Error() string { return w.what }

// errStopped ends the run of a task that was cancelled.
var errStopped = errors.New("the task was cancelled")

// Progress is one run of a task.
type Progress struct {
	s     *Service
	task  *ent.Task
	epoch int64
}

// By is who enqueued the task; zero for the platform itself.
func (p *Progress) By() uuid.UUID {
	if p.task.CreatorID == nil {
		return uuid.Nil
	}
	return *p.task.CreatorID
}

// State reads what was saved last into v, and leaves v alone before the first save.
func (p *Progress) State(v any) error {
	if len(p.task.State) == 0 {
		return nil
	}
	if err := json.Unmarshal(p.task.State, v); err != nil {
		return fmt.Errorf("read state of task %s: %w", p.task.ID, err)
	}
	return nil
}

// Save keeps where to go on, as JSON. Its error ends the run: the task was
// cancelled or another leader has it.
func (p *Progress) Save(ctx context.Context, state any, done, total int64) error {
	b, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	if err := p.update(ctx, func(up *ent.TaskUpdate) { up.SetState(b).SetDone(done).SetTotal(total) }); err != nil {
		return err
	}
	p.task.State, p.task.Total = b, total
	p.s.Wake(ctx, p.task.ID)
	return nil
}

func (p *Progress) update(ctx context.Context, set func(*ent.TaskUpdate)) error {
	return p.s.fenced(viewer.SystemContext(ctx), p.epoch, func(tx *ent.Tx) error {
		up := tx.Task.Update().Where(task.ID(p.task.ID), task.StatusEQ(task.StatusRunning))
		set(up)
		n, err := up.Save(viewer.SystemContext(ctx))
		if err == nil && n == 0 {
			return errStopped
		}
		return err
	})
}

// fenced runs f in a transaction of a leader that still leads.
func (s *Service) fenced(ctx context.Context, epoch int64, f func(tx *ent.Tx) error) error {
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := s.Fence(ctx, tx, epoch); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

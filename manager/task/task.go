// Package task runs work that continues after the request that started it, and after a crash.
// Services register a handler per kind and enqueue tasks in their own transactions; the leader
// runs them.
package task

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// Handler runs the tasks of one kind. Run can be called again after any failure or crash, with
// the last saved state, so every step must be idempotent. Errors of permanent classes end the
// task at once.
type Handler interface {
	Run(ctx context.Context, p *Progress, input []byte) error
}

// Undoer is a Handler whose tasks can be undone when they are cancelled: Undo reverts the work
// in the transaction of the cancellation, or returns an error, which prevents it. Failed tasks
// can be cancelled too.
type Undoer interface {
	Undo(ctx context.Context, tx *ent.Tx, t *ent.Task) error
}

// Wide is a Handler whose tasks mostly wait for something else. They have a limit of their own instead of that of
// all tasks.
type Wide interface{ AtOnce() int }

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
	Logger *slog.Logger
	// Backoff returns the wait after a number of failed attempts; nil: from 2 s, doubling.
	Backoff func(attempt int) time.Duration
	// Pause is the wait between two checks of a waiting task; zero: 2 s.
	Pause time.Duration
}

// Service stores and runs tasks. Create it with New, register all kinds, then call Lead.
type Service struct {
	Config
	kinds map[string]Handler

	mu     sync.Mutex
	active map[uuid.UUID]run // running in this process
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Backoff == nil {
		cfg.Backoff = func(attempt int) time.Duration { return time.Second << attempt }
	}
	if cfg.Pause == 0 {
		cfg.Pause = 2 * time.Second
	}
	return &Service{Config: cfg, kinds: map[string]Handler{}, active: map[uuid.UUID]run{}}
}

// Register adds the handler of a kind. It must be called before Lead.
func (s *Service) Register(kind string, h Handler) { s.kinds[kind] = h }

// Wanted describes a new task.
type Wanted struct {
	Kind, Title string
	Input       any // stored as JSON
	Subject     uuid.UUID
	Domain      uuid.UUID
	StartsAt    time.Time // zero: as soon as possible
	Message     string    // of a task that starts later
}

// Enqueue stores a task in the caller's transaction, in the name of the viewer. Call Wake
// after the commit.
func (s *Service) Enqueue(ctx context.Context, tx *ent.Tx, w Wanted) (*ent.Task, error) {
	if s.kinds[w.Kind] == nil {
		return nil, fmt.Errorf("no handler of tasks %q", w.Kind)
	}
	input, err := json.Marshal(w.Input)
	if err != nil {
		return nil, fmt.Errorf("encode task: %w", err)
	}
	c := tx.Task.Create().SetKind(w.Kind).SetTitle(w.Title).SetInput(input)
	if w.Subject != uuid.Nil {
		c.SetSubjectID(w.Subject)
	}
	if w.Domain != uuid.Nil {
		c.SetDomainID(w.Domain)
	}
	if v := viewer.From(ctx); v != nil && v.User != uuid.Nil {
		c.SetCreatorID(v.User)
	}
	if !w.StartsAt.IsZero() {
		c.SetStatus(task.StatusScheduled).SetRetryAt(w.StartsAt).SetMessage(w.Message)
	}
	t, err := c.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("enqueue %s: %w", w.Kind, err)
	}
	return t, nil
}

// Wake notifies the leader and subscribers that a task has changed.
func (s *Service) Wake(ctx context.Context, id uuid.UUID) {
	s.Bus.Publish(ctx, event.Event{Topic: event.Task, ID: id})
}

// CancelTaskInput names the task to cancel.
type CancelTaskInput struct{ ID uuid.UUID }

// RetryTaskInput names the task to run again.
type RetryTaskInput struct{ ID uuid.UUID }

// TaskPayload is a task after a change.
type TaskPayload struct{ Task *ent.Task }

// CancelTask cancels a live task. A running one stops at its next step; its work stays, unless
// its handler reverts it.
func (s *Service) CancelTask(ctx context.Context, in CancelTaskInput) (*TaskPayload, error) {
	t, err := s.mine(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	from := []task.Status{task.StatusWaiting, task.StatusScheduled, task.StatusRunning}
	undo, undoes := s.kinds[t.Kind].(Undoer)
	if undoes {
		from = append(from, task.StatusFailed)
	}
	return s.change(ctx, t, "it has ended already", from, func(tx *ent.Tx, locked *ent.Task) (*ent.TaskUpdateOne, error) {
		if undoes {
			if err := undo.Undo(ctx, tx, locked); err != nil {
				return nil, err
			}
		}
		return locked.Update().SetStatus(task.StatusCancelled).SetEndedAt(clock.Now()), nil
	})
}

// RetryTask runs a failed or cancelled task again from its saved state.
func (s *Service) RetryTask(ctx context.Context, in RetryTaskInput) (*TaskPayload, error) {
	t, err := s.mine(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	from := []task.Status{task.StatusFailed, task.StatusCancelled}
	return s.change(ctx, t, "it has neither failed nor been cancelled", from, func(_ *ent.Tx, locked *ent.Task) (*ent.TaskUpdateOne, error) {
		return locked.Update().SetStatus(task.StatusWaiting).SetAttempt(0).SetMessage("").ClearRetryAt().ClearEndedAt(), nil
	})
}

// mine returns a visible task that the viewer can change.
func (s *Service) mine(ctx context.Context, id uuid.UUID) (*ent.Task, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	t, err := s.Client.Task.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "task", "id")
	}
	e, on, _ := permit.Of(t)
	// Tasks on folders require the permission to change folders, also of a token.
	if folders := strings.HasPrefix(t.Kind, "vfolder.") || strings.HasPrefix(t.Kind, "objectstorage."); folders && !viewer.From(ctx).May(access.Update, e, on) {
		e = access.Vfolder
	}
	_, err = permit.Check(ctx, access.Update, e, on)
	return t, err
}

// change updates a task that is in one of the given states.
func (s *Service) change(ctx context.Context, t *ent.Task, why string, from []task.Status, set func(*ent.Tx, *ent.Task) (*ent.TaskUpdateOne, error)) (*TaskPayload, error) {
	out := &TaskPayload{}
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		locked, err := tx.Task.Query().Where(task.ID(t.ID), task.StatusIn(from...)).ForUpdate().Only(ctx)
		if ent.IsNotFound(err) {
			return problem.Precondition("%s", why)
		}
		if err != nil {
			return fmt.Errorf("lock task %s: %w", t.ID, err)
		}
		up, err := set(tx, locked)
		if err != nil {
			return err
		}
		out.Task, err = up.Save(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Task = out.Task.Unwrap()
	s.Wake(ctx, t.ID)
	return out, nil
}

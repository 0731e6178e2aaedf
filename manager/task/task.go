// Package task runs work that goes on after the request that asked for it, and
// after a crash of who does it. Services register a handler per kind and enqueue
// in their own transactions; the leader runs what waits.
package task

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
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
)

// Handler does the tasks of one kind. Run may be called again after any failure
// or crash, with the state saved last: every step must be harmless the second
// time. Errors of the classes that no repetition cures end the task at once.
type Handler interface {
	Run(ctx context.Context, p *Progress, input []byte) error
}

// Config are the parts a Service works with.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
	// Fence fails in the transaction of a leader that was replaced.
	Fence  func(ctx context.Context, tx *ent.Tx, epoch int64) error
	Logger *slog.Logger
	// Backoff is the wait after so many failed attempts; nil: from 2 s, doubling.
	Backoff func(attempt int) time.Duration
	// Pause is between two looks at what a task waits for; zero: 2 s.
	Pause time.Duration
}

// Service keeps and runs tasks. Make it with New, register all kinds, then Lead.
type Service struct {
	Config
	kinds map[string]Handler

	mu     sync.Mutex
	active map[uuid.UUID]bool // run by this process now
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Backoff == nil {
		cfg.Backoff = func(attempt int) time.Duration { return time.Second << attempt }
	}
	if cfg.Pause == 0 {
		cfg.Pause = 2 * time.Second
	}
	return &Service{Config: cfg, kinds: map[string]Handler{}, active: map[uuid.UUID]bool{}}
}

// Register makes the handler of a kind known. Call it before Lead.
func (s *Service) Register(kind string, h Handler) { s.kinds[kind] = h }

// Wanted is a task to come.
type Wanted struct {
	Kind, Title string
	Input       any // stored as JSON
	Subject     uuid.UUID
	Domain      uuid.UUID
}

// Enqueue stores a task in the caller's transaction, as of the viewer. Call Wake
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
	t, err := c.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("enqueue %s: %w", w.Kind, err)
	}
	return t, nil
}

// Wake tells the leader and whoever watches that a task changed.
func (s *Service) Wake(ctx context.Context, id uuid.UUID) {
	s.Bus.Publish(ctx, event.Event{Topic: event.Task, ID: id})
}

// CancelTaskInput names the task to cancel.
type CancelTaskInput struct{ ID uuid.UUID }

// RetryTaskInput names the task to run again.
type RetryTaskInput struct{ ID uuid.UUID }

// TaskPayload is a task after a change.
type TaskPayload struct{ Task *ent.Task }

// CancelTask ends a task that has not ended. One that runs stops at its next
// step; what it has done stays.
func (s *Service) CancelTask(ctx context.Context, in CancelTaskInput) (*TaskPayload, error) {
	return s.change(ctx, in.ID, "it has ended already", []task.Status{task.StatusWaiting, task.StatusRunning},
		func(up *ent.TaskUpdateOne) { up.SetStatus(task.StatusCancelled).SetEndedAt(clock.Now()) })
}

// RetryTask runs a failed or cancelled task again from where it was.
func (s *Service) RetryTask(ctx context.Context, in RetryTaskInput) (*TaskPayload, error) {
	return s.change(ctx, in.ID, "it has neither failed nor been cancelled", []task.Status{task.StatusFailed, task.StatusCancelled},
		func(up *ent.TaskUpdateOne) {
			up.SetStatus(task.StatusWaiting).SetAttempt(0).SetMessage("").ClearRetryAt().ClearEndedAt()
		})
}

func (s *Service) change(ctx context.Context, id uuid.UUID, why string, from []task.Status, set func(*ent.TaskUpdateOne)) (*TaskPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	t, err := s.Client.Task.Get(ctx, id)
	if ent.IsNotFound(err) {
		return nil, problem.NotFound("task").WithField("id")
	} else if err != nil {
		return nil, fmt.Errorf("read task: %w", err)
	}
	on := access.Object{ID: t.ID}
	if t.DomainID != nil {
		on.Domain = *t.DomainID
	}
	if t.CreatorID != nil {
		on.Owner = *t.CreatorID
	}
	if _, err := permit.Check(ctx, access.Update, access.Task, on); err != nil {
		return nil, err
	}
	up := t.Update().Where(task.StatusIn(from...))
	set(up)
	if t, err = up.Save(ctx); ent.IsNotFound(err) {
		return nil, problem.Precondition("%s", why)
	} else if err != nil {
		return nil, fmt.Errorf("change task %s: %w", id, err)
	}
	s.Wake(ctx, id)
	return &TaskPayload{Task: t}, nil
}

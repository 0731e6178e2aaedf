package task_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/task"
)

// counter counts to 5, saves each number, and calls the test's action for each number.
type counter struct {
	mu   sync.Mutex
	seen []int
	at   func(ctx context.Context, n int) error
	rest bool // report progress relative to the remaining work
}

func (c *counter) Run(ctx context.Context, p *task.Progress, _ []byte) error {
	var n int
	if err := p.State(&n); err != nil {
		return err
	}
	from := 0
	if c.rest {
		from = n
		if err := p.Save(ctx, n, 0, 0); err != nil {
			return err
		}
	}
	for n < 5 {
		n++
		c.mu.Lock()
		c.seen = append(c.seen, n)
		c.mu.Unlock()
		if err := c.at(ctx, n); err != nil {
			return err
		}
		if err := p.Save(ctx, n, int64(n-from), int64(5-from)); err != nil {
			return err
		}
	}
	return nil
}

type world struct {
	*identitytest.World
	s  *task.Service
	id uuid.UUID
}

func start(t *testing.T, at func(ctx context.Context, n int) error) (*world, *counter) {
	w := &world{World: identitytest.New(t)}
	log := slog.New(slog.DiscardHandler)
	w.s = task.New(task.Config{
		Client: w.Client, Bus: event.New(nil, log), Logger: log,
		Backoff: func(int) time.Duration { return 0 },
	})
	w.Elect(t, 1)
	c := &counter{at: at}
	w.s.Register("count", c)
	ctx := w.As(t, w.A.Member)
	tx, err := w.Client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	row, err := w.s.Enqueue(ctx, tx, task.Wanted{Kind: "count", Domain: w.A.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	w.id = row.ID
	return w, c
}

// lead runs the leader's loop until the task has ended or stop is closed.
func (w *world) lead(t *testing.T, stop <-chan struct{}) *ent.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Timeout)
	done := make(chan struct{})
	go func() { defer close(done); w.s.Lead(ctx, 1) }()
	system := viewer.SystemContext(t.Context())
	for ctx.Err() == nil && w.Client.Task.GetX(system, w.id).EndedAt == nil {
		select {
		case <-stop:
			cancel()
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	<-done
	return w.Client.Task.GetX(system, w.id)
}

func TestTaskGoesOnAfterACrash(t *testing.T) {
	stop := make(chan struct{})
	crashed := false
	w, c := start(t, func(ctx context.Context, n int) error {
		if n == 3 && !crashed {
			crashed = true
			close(stop)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if got := w.lead(t, stop); got.Status != enttask.StatusRunning || got.Done != 2 {
		t.Fatalf("after the crash: %v", got)
	}
	got := w.lead(t, nil)
	if got.Status != enttask.StatusDone || got.Done != 5 || got.Total != 5 {
		t.Errorf("in the end: %v", got)
	}
	if len(c.seen) != 6 || c.seen[3] != 3 {
		t.Errorf("steps %v, want only 3 twice", c.seen)
	}
}

// A run that counts only the remaining work does not decrease the reported progress.
func TestProgressNeverGoesBack(t *testing.T) {
	var progress []int64
	var w *world
	var c *counter
	crashes := 0
	w, c = start(t, func(ctx context.Context, n int) error {
		now := w.Client.Task.GetX(viewer.SystemContext(ctx), w.id)
		progress = append(progress, now.Done)
		if crashes < 2 && n == 2*(crashes+1) {
			crashes++
			return errors.New("a cable")
		}
		return nil
	})
	c.rest = true
	if got := w.lead(t, nil); got.Status != enttask.StatusDone || got.Done != 5 || got.Total != 5 {
		t.Errorf("in the end: %v", got)
	}
	if !slices.Equal(progress, []int64{0, 1, 1, 2, 3, 3, 4}) {
		t.Errorf("told %v", progress)
	}
}

func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		failures, attempts int
		err                error
		want               enttask.Status
	}{
		"twice":             {2, 3, errors.New("a cable"), enttask.StatusDone},
		"for ever":          {99, 5, problem.Unavailable("nobody there"), enttask.StatusFailed},
		"a permanent error": {99, 1, problem.Precondition("never"), enttask.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			left := c.failures
			w, _ := start(t, func(context.Context, int) error {
				if left--; left >= 0 {
					return c.err
				}
				return nil
			})
			got := w.lead(t, nil)
			if got.Status != c.want || got.Attempt != c.attempts {
				t.Errorf("%v after %d attempts, want %v after %d", got.Status, got.Attempt, c.want, c.attempts)
			}
			if c.want != enttask.StatusFailed {
				return
			}
			if got.Message == "" {
				t.Error("no message")
			}
			left = 0
			if _, err := w.s.RetryTask(w.As(t, w.A.Member), task.RetryTaskInput{ID: w.id}); err != nil {
				t.Fatal(err)
			}
			if got := w.lead(t, nil); got.Status != enttask.StatusDone {
				t.Errorf("run again: %v", got)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	var w *world
	w, c := start(t, func(_ context.Context, n int) error {
		if n == 2 {
			_, err := w.s.CancelTask(w.As(t, w.A.Member), task.CancelTaskInput{ID: w.id})
			return err
		}
		return nil
	})
	for who, u := range map[string]*ent.User{"a stranger": w.B.Admin, "a project admin": w.A.Lead} {
		_, err := w.s.CancelTask(w.As(t, u), task.CancelTaskInput{ID: w.id})
		if p, _ := problem.From(err); p.Code != problem.CodeNotFound {
			t.Errorf("%s: %v", who, err)
		}
	}
	if got := w.lead(t, nil); got.Status != enttask.StatusCancelled || len(c.seen) != 2 {
		t.Errorf("%v after steps %v", got, c.seen)
	}
}

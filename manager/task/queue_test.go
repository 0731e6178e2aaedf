package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/task"
)

// cluster is two managers on one database. Only the one with the newest epoch may write.
type cluster struct {
	*identitytest.World
	managers [2]*task.Service
}

const kinds = 5

func newCluster(t *testing.T) *cluster {
	c := &cluster{World: identitytest.New(t)}
	log := slog.New(slog.DiscardHandler)
	for i := range c.managers {
		c.managers[i] = task.New(task.Config{
			Client: c.Client, Bus: event.New(nil, log), Logger: log,
			Backoff: func(int) time.Duration { return 0 }, Pause: time.Millisecond,
		})
		for k := range kinds {
			c.managers[i].Register(fmt.Sprintf("kind%d", k), work{})
		}
	}
	return c
}

// enqueue adds a task whose input determines which of its steps fail.
func (c *cluster) enqueue(t *testing.T, in input) uuid.UUID {
	t.Helper()
	ctx := c.As(t, c.A.Member)
	tx, err := c.Client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	row, err := c.managers[0].Enqueue(ctx, tx, task.Wanted{Kind: in.Kind, Input: in, Domain: c.A.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return row.ID
}

// input describes a task of the test.
type input struct {
	Kind   string
	Steps  int
	Waits  bool // the task waits once for another event
	Fails  int  // attempts that fail before one succeeds
	Doomed bool // no attempt can succeed
}

// work executes the steps that the input of a task describes.
type work struct{}

// done is the saved state of a task.
type done struct {
	Steps, Failed int
	Waited        bool
}

func (work) Run(ctx context.Context, p *task.Progress, raw []byte) error {
	var in input
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	var d done
	if err := p.State(&d); err != nil {
		return err
	}
	if in.Doomed {
		return problem.Precondition("this cannot work")
	}
	if in.Waits && !d.Waited {
		d.Waited = true
		if err := p.Save(ctx, d, 0, 0); err != nil {
			return err
		}
		return task.Wait("something else")
	}
	if d.Failed < in.Fails {
		d.Failed++
		if err := p.Save(ctx, d, 0, 0); err != nil {
			return err
		}
		return errors.New("broken line")
	}
	for d.Steps < in.Steps {
		d.Steps++
		if err := p.Save(ctx, d, int64(d.Steps), int64(in.Steps)); err != nil {
			return err
		}
	}
	return nil
}

// TestEveryTaskEnds runs many tasks of every kind, cancels some of them, and changes the leader
// between two managers, sometimes without stopping the old leader. In the end, no task waits, and
// each has ended as its input determines.
func TestEveryTaskEnds(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := newCluster(t)
	want := map[uuid.UUID]input{}
	add := func(n int) {
		for range n {
			in := input{
				Kind: fmt.Sprintf("kind%d", r.IntN(kinds)), Steps: r.IntN(4),
				Waits: r.IntN(5) == 0, Fails: r.IntN(8) / 5, Doomed: r.IntN(10) == 0,
			}
			want[c.enqueue(t, in)] = in
		}
	}
	add(40)
	cancelled := map[uuid.UUID]bool{}
	var leaders sync.WaitGroup
	var stops []context.CancelFunc
	for round := range 6 {
		ctx, stop := context.WithCancel(t.Context())
		stops = append(stops, stop)
		epoch := int64(round + 1)
		c.Elect(t, epoch)
		if round%2 == 0 && round > 0 {
			stops[round-1]() // the other leader was killed; in odd rounds, it does not know that it was replaced
		}
		leaders.Go(func() { c.managers[round%2].Lead(ctx, epoch) })
		add(10)
		for id := range want {
			if r.IntN(20) > 0 {
				continue
			}
			_, err := c.managers[r.IntN(2)].CancelTask(c.As(t, c.A.Member), task.CancelTaskInput{ID: id})
			if p, _ := problem.From(err); err != nil && p.Code != problem.CodeFailedPrecondition {
				t.Errorf("cancel: %v", err)
			}
			cancelled[id] = cancelled[id] || err == nil
		}
		c.ends(t, len(want)*(round+1)/6)
	}
	c.ends(t, len(want))
	for _, stop := range stops {
		stop()
	}
	leaders.Wait()
	system := viewer.SystemContext(t.Context())
	for id, in := range want {
		got, status := c.Client.Task.GetX(system, id), enttask.StatusDone
		switch {
		case cancelled[id]:
			status = enttask.StatusCancelled
		case in.Doomed:
			status = enttask.StatusFailed
		}
		if got.Status != status {
			t.Errorf("%+v is %s (attempt %d, %q), want %s", in, got.Status, got.Attempt, got.Message, status)
		}
	}
}

// ends waits until at least n tasks have ended.
func (c *cluster) ends(t *testing.T, n int) {
	t.Helper()
	system := viewer.SystemContext(t.Context())
	wait.For(t, func() error {
		if ended := c.Client.Task.Query().Where(enttask.EndedAtNotNil()).CountX(system); ended < n {
			return fmt.Errorf("%d of %d tasks have ended", ended, n)
		}
		return nil
	})
}

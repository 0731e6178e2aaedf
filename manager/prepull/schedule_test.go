package prepull_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/prepull"
	"github.com/berthhq/berth/manager/task"
)

// bench has a service whose agents are simulated: a pull ends when the test lets it.
type bench struct {
	*identitytest.World
	root  context.Context
	image *ent.Image
	group *ent.ResourceGroup
	bus   *event.Bus

	mu      sync.Mutex
	now     time.Time
	has     map[string]bool
	pulls   map[string]int
	cut     map[string]error // how pulls ended that were not finished
	release map[string]chan struct{}
}

func newBench(t *testing.T, agents int) *bench {
	t.Helper()
	b := &bench{World: identitytest.New(t), now: time.Now(), has: map[string]bool{}, pulls: map[string]int{}, cut: map[string]error{}, release: map[string]chan struct{}{}}
	b.root, b.bus = b.As(t, b.Superadmin), event.New(nil, slog.New(slog.DiscardHandler))
	reg := b.Client.Registry.Create().SetName("r").SetHost("r.example.org").SaveX(b.root)
	b.image = b.Client.Image.Create().SetReference("r.example.org/tool:1").SetName("tool:1").SetArchitecture("amd64").SetDigest("sha256:1").SetRegistry(reg).SaveX(b.root)
	b.group = b.Client.ResourceGroup.Create().SetName("pulled").SaveX(b.root)
	for n := range agents {
		name := fmt.Sprint("a", n)
		b.release[name] = make(chan struct{})
		b.Client.Agent.Create().SetName(name).SetStatus(agent.StatusAlive).SetArchitecture("amd64").SetResourceGroup(b.group).ExecX(b.root)
	}
	return b
}

// manager returns the services of a manager, and lead runs its tasks as the leader of an epoch.
func (b *bench) manager(t *testing.T) (*prepull.Service, *task.Service) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	tasks := task.New(task.Config{Client: b.Client, Bus: b.bus, Logger: log, Backoff: func(int) time.Duration { return 0 }, Pause: time.Millisecond})
	return prepull.New(prepull.Config{Client: b.Client, Tasks: tasks, Agents: b, Images: b, Logger: log, Now: b.clock}), tasks
}

func (b *bench) lead(t *testing.T, tasks *task.Service, epoch int64) (stop func()) {
	b.Elect(t, epoch)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); tasks.Lead(ctx, epoch) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) set(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
}

// RPC implements prepull.Agents.
func (b *bench) RPC(string) (agentpb.AgentClient, error) { return nil, nil }

// HasImage implements prepull.Agents.
func (b *bench) HasImage(name, _, _ string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.has[name]
}

// Pull implements prepull.Agents.
func (b *bench) Pull(ctx context.Context, name string, _ *agentpb.PullImageRequest) error {
	b.mu.Lock()
	b.pulls[name]++
	b.mu.Unlock()
	select {
	case <-b.release[name]:
		b.mu.Lock()
		b.has[name] = true
		b.mu.Unlock()
		return nil
	case <-ctx.Done():
		b.mu.Lock()
		b.cut[name] = ctx.Err()
		b.mu.Unlock()
		return ctx.Err()
	}
}

// PullRequest implements prepull.Images.
func (b *bench) PullRequest(context.Context, *ent.Image) (*agentpb.PullImageRequest, error) {
	return &agentpb.PullImageRequest{}, nil
}

func (b *bench) pulled(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pulls[name]
}

func (b *bench) interrupted(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cut[name] != nil
}

func (b *bench) until(t *testing.T, id uuid.UUID, what string, is func(*ent.Task) bool) *ent.Task {
	t.Helper()
	wait.For(t, func() error {
		if got := b.Client.Task.GetX(b.root, id); !is(got) {
			return problem.Unavailable("not %s: the task is %s, %d of %d: %s", what, got.Status, got.Done, got.Total, got.Message)
		}
		return nil
	})
	return b.Client.Task.GetX(b.root, id)
}

func (b *bench) ask(t *testing.T, s *prepull.Service, in prepull.PrepullImageInput) *ent.Task {
	t.Helper()
	in.Image, in.Group = b.image.ID, b.group.ID
	out, err := s.PrepullImage(b.root, in)
	if err != nil {
		t.Fatal(err)
	}
	return out.Task
}

// A pre-pull waits for its window, is interrupted at its end, and continues in the next one with the agents that lack
// the image.
func TestWindowOfAPrepull(t *testing.T) {
	b := newBench(t, 2)
	s, tasks := b.manager(t)
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	name := zone.String()
	at := func(day, hour, minute, second int) time.Time {
		return time.Date(2026, 11, day, hour, minute, second, 0, zone)
	}
	b.set(at(27, 12, 0, 0))
	asked := b.ask(t, s, prepull.PrepullImageInput{Window: &prepull.PrepullWindowInput{Start: "02:00", End: "05:00", TimeZone: &name}})
	if asked.Status != enttask.StatusScheduled || asked.RetryAt == nil || !asked.RetryAt.Equal(at(28, 2, 0, 0)) || asked.Message != "It starts at 2026-11-28 02:00 Europe/Berlin." {
		t.Fatalf("the task is %s until %v", asked.Status, asked.RetryAt)
	}
	again := b.ask(t, s, prepull.PrepullImageInput{})
	if again.ID != asked.ID {
		t.Error("another task while one is scheduled")
	}
	stop := b.lead(t, tasks, 1)
	if b.pulled("a0") > 0 {
		t.Error("an agent pulls before the window")
	}
	// The time of the task has come by the clock of the database rows, but not the window: it waits again.
	b.Client.Task.UpdateOneID(asked.ID).SetRetryAt(time.Now()).ExecX(b.root)
	tasks.Wake(b.root, asked.ID)
	b.until(t, asked.ID, "scheduled again", func(x *ent.Task) bool {
		return x.Status == enttask.StatusScheduled && strings.HasPrefix(x.Message, "It continues")
	})
	if b.pulled("a0") > 0 {
		t.Error("an agent pulls outside of the window")
	}
	// A second before the end of the window.
	b.set(at(28, 4, 59, 59))
	b.Client.Task.UpdateOneID(asked.ID).SetRetryAt(time.Now()).ExecX(b.root)
	tasks.Wake(b.root, asked.ID)
	close(b.release["a0"])
	b.until(t, asked.ID, "at one agent", func(x *ent.Task) bool { return x.Done == 1 && x.Total == 2 })
	paused := b.until(t, asked.ID, "paused", func(x *ent.Task) bool { return x.Status == enttask.StatusScheduled && x.Done == 1 })
	if paused.Message != "The window has ended. It continues at 2026-11-29 02:00 Europe/Berlin." || !paused.RetryAt.Equal(at(29, 2, 0, 0)) || paused.Attempt != 0 {
		t.Errorf("the task is %q until %v, attempt %d", paused.Message, paused.RetryAt, paused.Attempt)
	}
	if !b.interrupted("a1") {
		t.Error("the pull of the second agent was not interrupted")
	}
	b.set(at(29, 2, 0, 0))
	close(b.release["a1"])
	b.Client.Task.UpdateOneID(asked.ID).SetRetryAt(time.Now()).ExecX(b.root)
	tasks.Wake(b.root, asked.ID)
	b.until(t, asked.ID, "done", func(x *ent.Task) bool { return x.Status == enttask.StatusDone && x.Done == 2 })
	if b.pulled("a0") != 1 || b.pulled("a1") != 2 {
		t.Errorf("pulls: %v", b.pulls)
	}
	stop()
}

func TestStartOfAPrepull(t *testing.T) {
	b := newBench(t, 1)
	s, tasks := b.manager(t)
	b.lead(t, tasks, 1)
	far := time.Now().Add(31 * 24 * time.Hour)
	if _, err := s.PrepullImage(b.root, prepull.PrepullImageInput{Image: b.image.ID, Group: b.group.ID, StartsAt: &far}); err == nil {
		t.Error("a start in 31 days")
	}
	soon := time.Now().Add(time.Hour)
	asked := b.ask(t, s, prepull.PrepullImageInput{StartsAt: &soon})
	if asked.Status != enttask.StatusScheduled || !asked.RetryAt.Equal(soon.Truncate(time.Microsecond)) && asked.RetryAt.Sub(soon).Abs() > time.Millisecond {
		t.Fatalf("the task is %s until %v", asked.Status, asked.RetryAt)
	}
	close(b.release["a0"])
	b.Client.Task.UpdateOneID(asked.ID).SetRetryAt(time.Now()).ExecX(b.root)
	tasks.Wake(b.root, asked.ID)
	b.until(t, asked.ID, "done", func(x *ent.Task) bool { return x.Status == enttask.StatusDone })
	past := time.Now().Add(-time.Hour)
	if asked := b.ask(t, s, prepull.PrepullImageInput{StartsAt: &past}); asked.Status == enttask.StatusScheduled {
		t.Error("a start in the past is scheduled")
	}
}

// A cancelled pre-pull interrupts the pulls that run, and keeps those that have ended. One that is scheduled never starts.
func TestCancelledPrepull(t *testing.T) {
	b := newBench(t, 2)
	s, tasks := b.manager(t)
	b.lead(t, tasks, 1)
	asked := b.ask(t, s, prepull.PrepullImageInput{})
	close(b.release["a0"])
	b.until(t, asked.ID, "at one agent", func(x *ent.Task) bool { return x.Done == 1 && x.Total == 2 })
	if _, err := tasks.CancelTask(b.root, task.CancelTaskInput{ID: asked.ID}); err != nil {
		t.Fatal(err)
	}
	wait.For(t, func() error {
		if !b.interrupted("a1") || tasks.Runs(asked.ID) {
			return problem.Unavailable("the pull runs")
		}
		return nil
	})
	if got := b.Client.Task.GetX(b.root, asked.ID); got.Status != enttask.StatusCancelled || got.Done != 1 || !b.HasImage("a0", "", "") || b.HasImage("a1", "", "") {
		t.Errorf("the task is %s with %d done", got.Status, got.Done)
	}
	later := time.Now().Add(time.Hour)
	scheduled := b.ask(t, s, prepull.PrepullImageInput{StartsAt: &later})
	if scheduled.ID == asked.ID {
		t.Fatal("the cancelled task is used again")
	}
	if out, err := tasks.CancelTask(b.root, task.CancelTaskInput{ID: scheduled.ID}); err != nil || out.Task.Status != enttask.StatusCancelled {
		t.Errorf("cancel a scheduled task: %v, %v", out, err)
	}
}

// The manager that pulls is killed: the next leader continues with the agents that lack the image, and the first one
// can store nothing.
func TestManagerKilledDuringAPrepull(t *testing.T) {
	b := newBench(t, 3)
	s, first := b.manager(t)
	kill := b.lead(t, first, 1)
	asked := b.ask(t, s, prepull.PrepullImageInput{})
	close(b.release["a0"])
	b.until(t, asked.ID, "at one agent", func(x *ent.Task) bool { return x.Done == 1 && x.Total == 3 })
	kill() // like a crash: the row says that the task runs
	if got := b.Client.Task.GetX(b.root, asked.ID); got.Status != enttask.StatusRunning {
		t.Fatalf("after the crash the task is %s", got.Status)
	}
	_, second := b.manager(t)
	b.lead(t, second, 2)
	close(b.release["a1"])
	close(b.release["a2"])
	b.until(t, asked.ID, "done", func(x *ent.Task) bool { return x.Status == enttask.StatusDone && x.Done == 3 && x.Total == 3 })
	if b.pulled("a0") != 1 || b.pulled("a1") != 2 || b.pulled("a2") != 2 {
		t.Errorf("pulls: %v", b.pulls)
	}
}

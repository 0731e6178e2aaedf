package device

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/device/devicetest"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var theStage = Request{ID: "k-1", Kernel: "k", Session: "s", Allocations: ask("play:0", "play.device", "1")}

// withPlay runs a manager with the plugin of a Stage.
func withPlay(t *testing.T) (*Manager, *devicetest.Stage) {
	t.Helper()
	s := devicetest.New(t)
	m, err := New(Config{
		Dir: short(t), Node: "n", Version: "test", Incarnation: "1", Logger: slog.New(slog.DiscardHandler),
		Plugins: []PluginConfig{{Path: s.Program, Force: true, Env: s.Env}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	m.AwaitReports(ctx, timeout)
	if find(m, "play:0") == nil {
		t.Fatalf("no stage: %v", describe(m).Plugins)
	}
	return m, s
}

// If a kernel ends while its devices are being prepared, the plugin finishes the preparation,
// although no caller waits for it, and then receives Unprepare.
func TestEndsWhilePreparing(t *testing.T) {
	m, s := withPlay(t)
	s.Put("prepare")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := m.Prepare(ctx, theStage)
		failed <- err
	}()
	wait.Until(t, "the plugin prepares", func() bool { return strings.Contains(s.Journal(), "prepare k-1") })
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("prepare: %v", err)
	}
	soon, over := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer over()
	if err := m.Unprepare(soon, theStage.ID, theStage.Allocations, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("unprepare while the plugin prepares: %v", err)
	}
	s.Remove("prepare")
	if err := m.Unprepare(t.Context(), theStage.ID, theStage.Allocations, nil); err != nil {
		t.Fatal(err)
	}
	if j := s.Journal(); s.There("effects/k-1") || !strings.HasSuffix(j, "prepared k-1\nunprepare k-1 state-of-k-1\n") {
		t.Errorf("it is still prepared:\n%s", j)
	}
}

// A kernel ends while a plugin starts that has already received the kernel as a live one.
func TestEndsWhileThePluginStarts(t *testing.T) {
	m, s := withPlay(t)
	prepared, err := m.Prepare(t.Context(), theStage)
	if err != nil {
		t.Fatal(err)
	}
	s.Put("restore")
	kill(t, m)
	wait.Until(t, "the plugin gets the live allocations", func() bool { return strings.Contains(s.Journal(), "restore k-1=state-of-k-1\n") })
	if err := m.Unprepare(t.Context(), theStage.ID, theStage.Allocations, prepared.States); err != nil {
		t.Fatal(err)
	}
	if !s.There("effects/k-1") {
		t.Fatal("nothing undid the allocation")
	}
	s.Remove("restore")
	wait.Until(t, "it is undone", func() bool { return !s.There("effects/k-1") })
	wait.Until(t, "nothing is owed", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.owed) == 0
	})
	kill(t, m)
	wait.Until(t, "the plugin gets no live allocations", func() bool { return strings.HasSuffix(s.Journal(), "\nrestore\n") })
}

// A plugin that runs but fails to undo an allocation is called again. Until it succeeds, the
// devices are not free.
func TestUndoFails(t *testing.T) {
	m, s := withPlay(t)
	prepared, err := m.Prepare(t.Context(), theStage)
	if err != nil {
		t.Fatal(err)
	}
	s.Put("stuck")
	for range 2 {
		err := m.Unprepare(t.Context(), theStage.ID, theStage.Allocations, prepared.States)
		if !errdefs.IsUnavailable(err) || !strings.Contains(err.Error(), "the stage is stuck") {
			t.Fatalf("unprepare: %v", err)
		}
		if _, err := os.Stat(m.work("play", theStage.ID)); err != nil {
			t.Errorf("its work directory: %v", err)
		}
		prepared.States = nil // as if the agent was killed before it recorded the state
	}
	s.Remove("stuck")
	if err := m.Unprepare(t.Context(), theStage.ID, theStage.Allocations, nil); err != nil {
		t.Fatal(err)
	}
	if j := s.Journal(); s.There("effects/k-1") || strings.Count(j, "unprepare k-1 state-of-k-1\n") != 3 {
		t.Errorf("journal:\n%s", j)
	}
}

// An allocation that one plugin has prepared is undone with its state if another plugin fails.
func TestHalfPrepared(t *testing.T) {
	m, s := withPlay(t)
	r := theStage
	r.Allocations = append(ask("zzz:0", "zzz.device", "1"), r.Allocations...)
	if _, err := m.Prepare(t.Context(), r); !errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), "zzz") {
		t.Fatalf("prepare: %v", err)
	}
	if !s.There("effects/k-1") {
		t.Fatal("nothing is prepared")
	}
	if err := m.Unprepare(t.Context(), r.ID, r.Allocations, nil); err != nil {
		t.Fatal(err)
	}
	if j := s.Journal(); s.There("effects/k-1") || !strings.HasSuffix(j, "unprepare k-1 state-of-k-1\n") {
		t.Errorf("journal:\n%s", j)
	}
}

// An invalid response is refused with the reason, and undone.
func TestMalformedAnswer(t *testing.T) {
	m, s := withPlay(t)
	s.Put("malformed")
	if _, err := m.Prepare(t.Context(), theStage); !errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), "resource_data: PLAY is not one line") {
		t.Errorf("prepare: %v", err)
	}
	if err := m.Unprepare(t.Context(), theStage.ID, theStage.Allocations, nil); err != nil {
		t.Fatal(err)
	}
	if j := s.Journal(); s.There("effects/k-1") || !strings.HasSuffix(j, "unprepare k-1 state-of-k-1\n") {
		t.Errorf("journal:\n%s", j)
	}
}

// Of two plugins that announce the same key at the same time, one is admitted.
func TestOneOfAName(t *testing.T) {
	for range 300 {
		m, err := New(Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Plugins: []PluginConfig{{Path: "/none/a", Force: true}, {Path: "/none/b", Force: true}}})
		if err != nil {
			t.Fatal(err)
		}
		var said [2]string
		var wg sync.WaitGroup
		for i, p := range m.plugins {
			wg.Go(func() { said[i] = p.admit(&acceleratorpb.DescribeResponse{Key: "x"}) })
		}
		wg.Wait()
		if (said[0] == "") == (said[1] == "") {
			t.Fatalf("both are admitted, or none: %q", said)
		}
	}
}

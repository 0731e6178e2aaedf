package pluginhost_test

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/pluginhost"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// child is an idle real process.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func launch(context.Context) (*child, error) {
	c := &child{cmd: exec.Command("sleep", "600"), done: make(chan struct{})}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { defer close(c.done); _ = c.cmd.Wait() }()
	return c, nil
}

func (c *child) Done() <-chan struct{} { return c.done }
func (c *child) Close() error {
	_ = c.cmd.Process.Kill()
	<-c.done
	return nil
}
func (c *child) kill() { _ = c.cmd.Process.Kill() }

// run runs a host until the end of the test.
func run(t *testing.T, cfg pluginhost.Config[*child]) *pluginhost.Host[*child] {
	t.Helper()
	h := pluginhost.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return h
}

// timeout bounds every wait. It is long enough for a busy machine.
const timeout = 2 * time.Minute

func ready(t *testing.T, h *pluginhost.Host[*child]) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := h.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKilledProcessIsBack(t *testing.T) {
	h := run(t, pluginhost.Config[*child]{Name: "x", Launch: launch})
	first := ready(t, h)
	began := time.Now()
	first.kill()
	<-first.done
	second := ready(t, h)
	t.Logf("restart took %v", time.Since(began))
	if second == first || second.cmd.Process.Pid == first.cmd.Process.Pid {
		t.Error("got the dead process")
	}
	if s := h.Status(); s.State != pluginhost.Running || s.Restarts != 1 {
		t.Errorf("status %+v, want running after 1 restart", s)
	}
}

func TestBackoffGrowsAndIsVisible(t *testing.T) {
	var starts []time.Time
	var mu sync.Mutex
	h := run(t, pluginhost.Config[*child]{Name: "x", Launch: func(context.Context) (*child, error) {
		mu.Lock()
		defer mu.Unlock()
		starts = append(starts, time.Now())
		return nil, errors.New("no driver")
	}})
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(starts) }
	wait.Until(t, "three attempts", func() bool { return count() >= 3 })
	t.Logf("first restart after %v", starts[1].Sub(starts[0]))
	if gap := starts[2].Sub(starts[1]); gap < 450*time.Millisecond {
		t.Errorf("second restart after %v, want about 500 ms", gap)
	}
	wait.Until(t, "back-off state", func() bool { return h.Status().State == pluginhost.Backoff })
	if s := h.Status(); s.Message != "no driver" || s.Restarts < 1 {
		t.Errorf("status %+v", s)
	}
	if _, err := h.Get(t.Context()); !errdefs.IsUnavailable(err) {
		t.Errorf("Get: %v, want unavailable", err)
	}
}

func TestStableRunForgetsFailures(t *testing.T) {
	h := run(t, pluginhost.Config[*child]{Name: "x", Launch: launch, StableAfter: time.Millisecond})
	// Without the reset, each restart after the third is delayed by at least 2 s, on any machine;
	// with it, no restart is delayed.
	quick := false
	for i := range 7 {
		c := ready(t, h)
		wait.Until(t, "running", func() bool { return time.Since(h.Status().Since) > 2*time.Millisecond })
		began := time.Now()
		c.kill()
		<-c.done
		ready(t, h)
		quick = quick || i > 3 && time.Since(began) < 1900*time.Millisecond
	}
	if !quick {
		t.Error("failures are not forgotten")
	}
}

func TestSilentProcessIsReplaced(t *testing.T) {
	var silent atomic.Pointer[child]
	h := run(t, pluginhost.Config[*child]{
		Name: "x", Launch: launch,
		ProbeEvery: 20 * time.Millisecond, ProbeTimeout: 20 * time.Millisecond,
		Probe: func(ctx context.Context, c *child) error {
			if silent.Load() != c {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		},
	})
	first := ready(t, h)
	silent.Store(first)
	select {
	case <-first.done:
	case <-time.After(timeout):
		t.Fatal("a silent process was not ended")
	}
	if ready(t, h) == first {
		t.Fatal("got the silent process")
	}
}

func TestRestart(t *testing.T) {
	broken := atomic.Bool{}
	h := run(t, pluginhost.Config[*child]{Name: "x", MaxBackoff: time.Hour, Launch: func(ctx context.Context) (*child, error) {
		if broken.Load() {
			return nil, errors.New("no driver")
		}
		return launch(ctx)
	}})
	first := ready(t, h)
	h.Restart("somebody asked for it")
	select {
	case <-first.done:
	case <-time.After(timeout):
		t.Fatal("the process was not ended")
	}
	second := ready(t, h)
	if second == first || h.Status().Restarts != 1 {
		t.Errorf("status %+v", h.Status())
	}
	broken.Store(true)
	second.kill()
	// Each failure doubles the delay, until only Restart can end it within the timeout.
	wait.Until(t, "a few failures", func() bool { return h.Status().Restarts > 4 && h.Status().State == pluginhost.Backoff })
	broken.Store(false)
	h.Restart("the driver is there")
	ready(t, h)
}

func TestRevive(t *testing.T) {
	var there atomic.Bool
	h := pluginhost.New(pluginhost.Config[*child]{Name: "x", Launch: func(ctx context.Context) (*child, error) {
		if !there.Load() {
			return nil, pluginhost.ErrDisable
		}
		return launch(ctx)
	}})
	if err := h.Run(t.Context()); !errors.Is(err, pluginhost.ErrDisable) {
		t.Fatal(err)
	}
	there.Store(true)
	h.Revive()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	ready(t, h)
}

func TestDisableEndsAttempts(t *testing.T) {
	n := 0
	h := pluginhost.New(pluginhost.Config[*child]{Name: "x", Launch: func(context.Context) (*child, error) {
		n++
		return nil, errors.Join(errors.New("checksums did not match"), pluginhost.ErrDisable)
	}})
	if err := h.Run(t.Context()); !errors.Is(err, pluginhost.ErrDisable) || n != 1 {
		t.Errorf("Run: %v after %d attempts", err, n)
	}
	if _, err := h.Wait(t.Context()); !errdefs.IsUnavailable(err) {
		t.Errorf("Wait: %v, want unavailable at once", err)
	}
}

func TestNotHandedOutBeforeReady(t *testing.T) {
	var tries atomic.Int32
	var refused atomic.Pointer[child]
	h := run(t, pluginhost.Config[*child]{
		Name: "x", Launch: launch,
		Ready: func(_ context.Context, c *child) error {
			if tries.Add(1) == 1 {
				refused.Store(c)
				return errors.New("bad configuration")
			}
			return nil
		},
	})
	if ready(t, h) == refused.Load() {
		t.Error("handed out a process that was not ready")
	}
	select {
	case <-refused.Load().done:
	default:
		t.Error("the refused process still runs")
	}
}

func TestStopLeavesNoProcess(t *testing.T) {
	h := pluginhost.New(pluginhost.Config[*child]{Name: "x", Launch: launch})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	c := ready(t, h)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(c.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process still there: %v", err)
	}
	if s := h.Status(); s.State != pluginhost.Disabled {
		t.Errorf("state %v, want disabled", s.State)
	}
}

// Package pluginhost supervises one plugin process: it starts the process, detects that it has
// exited or hangs, and restarts it with a back-off. The agent uses it for accelerator plugins, the
// storage proxy for volume plugins.
package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/containerd/errdefs"
)

// Plugin is a running plugin process.
type Plugin interface {
	// Done returns a channel that is closed when the process has exited.
	Done() <-chan struct{}
	// Close ends the process and waits for its exit.
	Close() error
}

// State is the state of a host.
type State int

// The states of a host.
const (
	Starting State = iota
	Running
	Backoff  // waits before the next attempt
	Disabled // given up or stopped
)

func (s State) String() string {
	return [...]string{"starting", "running", "backoff", "disabled"}[s]
}

// Status is a host's state at a point in time.
type Status struct {
	State    State
	Message  string // why it is not running
	Restarts int    // number of processes started after the first
	Since    time.Time
}

// ErrDisable in the error of Launch ends all attempts: the program is missing, has the wrong
// checksum or implements another contract.
var ErrDisable = errors.New("plugin disabled")

// Config describes the plugin to run. Zero durations select the defaults.
type Config[T Plugin] struct {
	Name string
	// Launch starts the process. It must return soon after its context ends.
	Launch func(context.Context) (T, error)
	// Ready prepares a new process (configure, restore) before Get returns it; nil skips this.
	Ready func(context.Context, T) error
	// Probe checks that a running process responds; nil skips this.
	Probe func(context.Context, T) error
	// OnChange is called with every new status, in order, by Run's goroutine.
	OnChange func(Status)
	Logger   *slog.Logger

	ProbeEvery   time.Duration // default 10 s
	ProbeTimeout time.Duration // default 5 s; two consecutive failures end the process
	MaxBackoff   time.Duration // default 30 s
	StableAfter  time.Duration // default 1 min; after running this long, earlier failures are forgotten
}

// Host supervises one plugin. Create it with New.
type Host[T Plugin] struct {
	cfg Config[T]

	mu     sync.Mutex
	status Status
	live   T
	alive  bool
	next   chan struct{} // closed at the next change of the status

	restart chan string // reasons of requested restarts, for Run
}

// New returns a host that is idle until Run.
func New[T Plugin](cfg Config[T]) *Host[T] {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&cfg.ProbeEvery, 10*time.Second)
	def(&cfg.ProbeTimeout, 5*time.Second)
	def(&cfg.MaxBackoff, 30*time.Second)
	def(&cfg.StableAfter, time.Minute)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = cfg.Logger.With("plugin", cfg.Name)
	return &Host[T]{cfg: cfg, next: make(chan struct{}), restart: make(chan string, 1), status: Status{Since: time.Now()}}
}

// Status returns the current status.
func (h *Host[T]) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// Get returns the running plugin, or an Unavailable error with the reason why it is not running.
func (h *Host[T]) Get(ctx context.Context) (T, error) {
	p, _, err := h.get()
	if err == nil {
		err = ctx.Err()
	}
	return p, err
}

// Wait waits until the plugin is running or the context ends, and returns the same as Get.
func (h *Host[T]) Wait(ctx context.Context) (T, error) {
	for {
		p, next, err := h.get()
		if err == nil || h.Status().State == Disabled {
			return p, err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return p, err
		}
	}
}

func (h *Host[T]) get() (T, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var none T
	if !h.alive {
		s := h.status
		return none, h.next, fmt.Errorf("plugin %s is %s: %s: %w", h.cfg.Name, s.State, s.Message, errdefs.ErrUnavailable)
	}
	select {
	case <-h.live.Done(): // Run has not noticed the exit yet
		return none, h.next, fmt.Errorf("plugin %s has ended: %w", h.cfg.Name, errdefs.ErrUnavailable)
	default:
		return h.live, h.next, nil
	}
}

// Restart ends the process for the given reason and starts it again at once. If the host waits
// before its next attempt, it makes the attempt at once. Restart does not wait for any of this. A
// disabled plugin stays disabled until Revive.
func (h *Host[T]) Restart(why string) {
	select {
	case h.restart <- why:
	default: // a restart is pending already
	}
}

// Revive enables a plugin that was disabled, so that Wait waits for it again. The owner must then
// call Run again.
func (h *Host[T]) Revive() { h.set(Starting, "starting") }

// restarted is the error of a process that Restart has ended.
type restarted string

func (r restarted) Error() string { return string(r) }

// Run supervises the plugin until the context ends or the plugin is disabled. No process is left
// when it returns.
func (h *Host[T]) Run(ctx context.Context) error {
	failures := 0
	for {
		h.set(Starting, "starting")
		began := time.Now()
		err := h.once(ctx)
		if ctx.Err() != nil {
			h.set(Disabled, "stopped")
			return nil
		}
		if errors.Is(err, ErrDisable) {
			h.set(Disabled, err.Error())
			h.cfg.Logger.Info("plugin disabled", "reason", err)
			return err
		}
		var asked restarted
		if time.Since(began) >= h.cfg.StableAfter || errors.As(err, &asked) {
			failures = 0
		}
		wait := h.delay(failures)
		failures++
		h.set(Backoff, err.Error())
		h.cfg.Logger.Warn("plugin is not running", "error", err, "retry_in", wait)
		select {
		case <-time.After(wait):
		case <-h.restart:
		case <-ctx.Done():
		}
		h.mu.Lock()
		h.status.Restarts++
		h.mu.Unlock()
	}
}

// delay returns 0, 0.5 s, 1 s, 2 s and so on up to the maximum: a plugin that was running is
// restarted at once, and one that cannot run causes little load.
func (h *Host[T]) delay(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(h.cfg.MaxBackoff, 500*time.Millisecond<<min(failures-1, 16))
}

// once runs one process and returns why it ended.
func (h *Host[T]) once(ctx context.Context) (why error) {
	p, err := h.cfg.Launch(ctx)
	if err != nil {
		return err
	}
	defer func() {
		var none T
		h.mu.Lock()
		h.live, h.alive = none, false
		h.mu.Unlock()
		if ctx.Err() == nil {
			h.set(Backoff, why.Error()) // before Close, which can take seconds
		}
		if err := p.Close(); err != nil {
			h.cfg.Logger.Warn("close plugin", "error", err)
		}
	}()
	if h.cfg.Ready != nil {
		if err := h.cfg.Ready(ctx, p); err != nil {
			return fmt.Errorf("make ready: %w", err)
		}
	}
	select {
	case <-h.restart: // requested while the process was starting
	default:
	}
	h.mu.Lock()
	h.live, h.alive = p, true
	h.mu.Unlock()
	h.set(Running, "")
	return h.watch(ctx, p)
}

func (h *Host[T]) watch(ctx context.Context, p T) error {
	ticks := time.NewTicker(h.cfg.ProbeEvery)
	defer ticks.Stop()
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.Done():
			return errors.New("process ended")
		case why := <-h.restart:
			return restarted(why)
		case <-ticks.C:
		}
		if h.cfg.Probe == nil {
			continue
		}
		probe, cancel := context.WithTimeout(ctx, h.cfg.ProbeTimeout)
		err := h.cfg.Probe(probe, p)
		cancel()
		if err == nil {
			missed = 0
		} else if missed++; missed == 2 {
			return fmt.Errorf("no longer answers: %w", err)
		}
	}
}

func (h *Host[T]) set(s State, message string) {
	h.mu.Lock()
	h.status.State, h.status.Message, h.status.Since = s, message, time.Now()
	status := h.status
	close(h.next)
	h.next = make(chan struct{})
	h.mu.Unlock()
	if h.cfg.OnChange != nil {
		h.cfg.OnChange(status)
	}
}

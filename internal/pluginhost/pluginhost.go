// Package pluginhost keeps one plugin process running: it starts it, notices
// when it has ended or no longer answers, and starts it again with back-off.
// The agent uses it for accelerator plugins, the storage proxy for volume
// plugins.
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
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Close ends the process and waits for it.
	Close() error
}

// State is what a host is doing.
type State int

// The states of a host.
const (
	Starting State = iota
	Running
	Backoff  // waits before the next attempt
	Disabled // gave up, or was stopped
)

func (s State) String() string {
	return [...]string{"starting", "running", "backoff", "disabled"}[s]
}

// Status is a host's state at one moment.
type Status struct {
	State    State
	Message  string // why it is not running
	Restarts int    // processes started after the first
	Since    time.Time
}

// ErrDisable, wrapped by Launch's error, ends all attempts: the program is
// missing, has the wrong checksum or speaks another contract.
var ErrDisable = errors.New("plugin disabled")

// Config describes a plugin to keep running. Zero durations take the defaults.
type Config[T Plugin] struct {
	Name string
	// Launch starts the process; it must return soon after its context ends.
	Launch func(context.Context) (T, error)
	// Ready prepares a new process (configure, restore) before Get hands it
	// out; nil = nothing to do.
	Ready func(context.Context, T) error
	// Probe asks whether a running process still answers; nil = never asked.
	Probe func(context.Context, T) error
	// OnChange is told of every new status, in order, by Run's goroutine.
	OnChange func(Status)
	Logger   *slog.Logger

	ProbeEvery   time.Duration // 10 s
	ProbeTimeout time.Duration // 5 s; two failures in a row end the process
	MaxBackoff   time.Duration // 30 s
	StableAfter  time.Duration // 1 min of running forgets earlier failures
}

// Host keeps one plugin running. Make it with New.
type Host[T Plugin] struct {
	cfg Config[T]

	mu     sync.Mutex
	status Status
	live   T
	alive  bool
	next   chan struct{} // closed at the next change of status

	restart chan string // why, for Run
}

// New returns a host that does nothing until Run.
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

// Status returns the present status.
func (h *Host[T]) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// Get returns the running plugin, or an Unavailable error that says why there
// is none.
func (h *Host[T]) Get(ctx context.Context) (T, error) {
	p, _, err := h.get()
	if err == nil {
		err = ctx.Err()
	}
	return p, err
}

// Wait is Get that waits for a plugin to run until the context ends.
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
	case <-h.live.Done(): // Run has yet to notice
		return none, h.next, fmt.Errorf("plugin %s has ended: %w", h.cfg.Name, errdefs.ErrUnavailable)
	default:
		return h.live, h.next, nil
	}
}

// Restart ends the process, for the reason given, and starts it again at once; one
// that waits for its next attempt starts now. It does not wait for either. A plugin
// that is disabled stays so until Revive.
func (h *Host[T]) Restart(why string) {
	select {
	case h.restart <- why:
	default: // one is under way
	}
}

// Revive takes back that the plugin is disabled: Wait waits for it again. Its owner
// calls Run then.
func (h *Host[T]) Revive() { h.set(Starting, "starting") }

// restarted is the end of a life that Restart asked for.
type restarted string

func (r restarted) Error() string { return string(r) }

// Run keeps the plugin running until the context ends or the plugin is
// disabled, and leaves no process behind.
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

// delay grows 0, ½ s, 1 s, 2 s … up to the maximum: a plugin that ran is back
// at once, one that cannot run costs little.
func (h *Host[T]) delay(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(h.cfg.MaxBackoff, 500*time.Millisecond<<min(failures-1, 16))
}

// once is one life of the process; it returns why the life ended.
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
			h.set(Backoff, why.Error()) // before Close, which may take seconds
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
	case <-h.restart: // asked for while it started: it has just been
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

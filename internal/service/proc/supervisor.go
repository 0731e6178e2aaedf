package proc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
)

// The pause before a restart is a tenth of a second at first and doubles up to half a minute. After
// a child has run for a minute, the pause starts from the beginning.
const (
	firstDelay   = 100 * time.Millisecond
	longestDelay = 30 * time.Second
	settled      = time.Minute
)

// Spec describes how to run and check one program.
type Spec struct {
	Name string
	// Command returns the command for the next start. Its output goes to the log.
	Command func() (*exec.Cmd, error)
	// Ready returns nil as soon as the program answers. It is called every few milliseconds until
	// then.
	Ready func(context.Context) error
	// StopSignal requests an orderly end; after Grace, SIGKILL follows.
	StopSignal syscall.Signal
	Grace      time.Duration
	// DeathSignal is the signal that the child gets when this process dies.
	DeathSignal syscall.Signal
	// StartTimeout limits one start until Ready returns nil.
	StartTimeout time.Duration
	// Level returns the log level of a line of the program's output.
	Level  slog.Level
	Logger *slog.Logger
}

// Supervisor runs a program until Stop, and restarts it when it ends by itself.
type Supervisor struct {
	spec   Spec
	stop   chan struct{}
	once   sync.Once
	ended  chan struct{}
	mu     sync.Mutex
	now    *child // nil between two instances
	starts int
}

// child is one running instance of the program.
type child struct {
	cmd    *exec.Cmd
	out    *output
	begun  time.Time
	exited chan struct{}
	err    error // of Wait; valid once exited is closed
}

// Start runs the program and returns when it is ready. After an error, it is not running. ctx
// limits this call, not the program's life.
func Start(ctx context.Context, spec Spec) (*Supervisor, error) {
	s := &Supervisor{spec: spec, stop: make(chan struct{}), ended: make(chan struct{})}
	c, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	go s.keep(c)
	return s, nil
}

// PID returns the process id of the running instance, or 0 between two instances.
func (s *Supervisor) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return 0
	}
	return s.now.cmd.Process.Pid
}

// Starts returns the number of starts of the program.
func (s *Supervisor) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// Done returns a channel that is closed after Stop has ended the program.
func (s *Supervisor) Done() <-chan struct{} { return s.ended }

// Stop ends the program: its stop signal first, SIGKILL after its grace or when ctx ends, whichever
// is sooner. It returns after the exit of the process.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.once.Do(func() { close(s.stop) })
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
	}
	s.signal(syscall.SIGKILL)
	<-s.ended
	return fmt.Errorf("stop %s: killed: %w", s.spec.Name, ctx.Err())
}

// keep restarts the program whenever it has ended, until Stop.
func (s *Supervisor) keep(c *child) {
	defer close(s.ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-s.stop
		cancel()
	}()
	delay := firstDelay
	for {
		if c != nil {
			select {
			case <-s.stop:
				s.end(c)
				return
			case <-c.exited:
			}
			s.set(nil)
			if time.Since(c.begun) >= settled {
				delay = firstDelay
			}
			s.spec.Logger.Error("child ended; it is restarted", "child", s.spec.Name, "error", c.failure(), "delay", delay)
		}
		select {
		case <-s.stop:
			return
		case <-time.After(delay):
		}
		delay = min(2*delay, longestDelay)
		var err error
		if c, err = s.start(ctx); err != nil && ctx.Err() == nil {
			s.spec.Logger.Error("child cannot be started", "child", s.spec.Name, "error", err, "delay", delay)
		}
	}
}

// start runs one instance and waits until it is ready.
func (s *Supervisor) start(ctx context.Context) (*child, error) {
	cmd, err := s.spec.Command()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.spec.Name, err)
	}
	c := &child{cmd: cmd, out: newOutput(s.spec.Logger, s.spec.Level, s.spec.Name), begun: time.Now(), exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = c.out, c.out
	cmd.WaitDelay = time.Second // a grandchild may hold the output open
	if err := StartChild(cmd, s.spec.DeathSignal); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.spec.Name, err)
	}
	s.set(c)
	go func() {
		c.err = cmd.Wait()
		close(c.exited)
	}()
	if err := s.untilReady(ctx, c); err != nil {
		s.end(c)
		return nil, fmt.Errorf("start %s: %w", s.spec.Name, err)
	}
	return c, nil
}

func (s *Supervisor) untilReady(ctx context.Context, c *child) error {
	ctx, cancel := context.WithTimeout(ctx, s.spec.StartTimeout)
	defer cancel()
	wait := time.NewTicker(5 * time.Millisecond)
	defer wait.Stop()
	for {
		err := s.spec.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return c.failure()
		case <-s.stop:
			return fmt.Errorf("stopped during the start: %w", errdefs.ErrAborted)
		case <-ctx.Done():
			return fmt.Errorf("not ready (%w): %w: %s", err, ctx.Err(), c.out.tail())
		case <-wait.C:
		}
	}
}

// end stops one instance and returns after its exit.
func (s *Supervisor) end(c *child) {
	defer s.set(nil)
	s.signal(s.spec.StopSignal)
	select {
	case <-c.exited:
		return
	case <-time.After(s.spec.Grace):
	}
	s.spec.Logger.Warn("child did not stop in time, it is killed", "child", s.spec.Name, "grace", s.spec.Grace)
	s.signal(syscall.SIGKILL)
	<-c.exited
}

func (s *Supervisor) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		_ = s.now.cmd.Process.Signal(sig) // it has exited already
	}
}

func (s *Supervisor) set(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = c
	if c != nil {
		s.starts++
	}
}

// failure describes the end of an instance, with its last lines of output.
func (c *child) failure() error {
	err := c.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("ended by itself: %w: %w: %s", err, errdefs.ErrUnavailable, c.out.tail())
}

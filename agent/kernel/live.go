package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
)

// The reasons why a kernel ended, as in the contract.
const (
	Completed    = "completed"
	Terminated   = "terminated"
	OOMKilled    = "oom-killed"
	StartFailed  = "start-failed"
	Refused      = "refused"     // like StartFailed, and a retry would fail in the same way
	AgentUnfit   = "agent-unfit" // like StartFailed, because of a condition of the machine
	DiskExceeded = "disk-exceeded"
	NotFound     = "not-found"
	Lost         = "lost"
)

const (
	defaultGrace = 10 * time.Second
	// killAgain is the retry interval for a process that survives SIGKILL because it is blocked in
	// the kernel, waiting for a disk or a device.
	killAgain = 10 * time.Second
)

// end is how a kernel ended.
type end struct {
	code    int
	reason  string
	message string
	at      time.Time
}

// live runs the whole life cycle of a kernel in one goroutine, continuing from the recorded state.
// If the context ends, the container and the record stay as they are for the next agent.
func (k *Kernel) live(ctx context.Context, found runtime.Container) {
	k.hold(found)
	err := k.bring(ctx)
	var e end
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		if e, err = k.attend(ctx); err != nil {
			return // the context has ended, the kernel has not
		}
	case k.stopRequest() != nil:
		e = end{code: 128 + int(syscall.SIGKILL), reason: Terminated, message: k.stopRequest().Reason}
	case errors.Is(err, errLost):
		e = end{code: 128 + int(syscall.SIGKILL), reason: Lost, message: "container did not exist when the agent started"}
	default:
		k.m.cfg.Logger.Warn("kernel did not start", "kernel", k.ID, "error", err)
		e = k.unstarted(ctx, err)
	}
	k.finish(ctx, e)
}

// unstarted returns the end of a kernel that failed to start, with the cause.
func (k *Kernel) unstarted(ctx context.Context, err error) end {
	e := end{code: 1, reason: StartFailed, message: err.Error()}
	if why, yes := k.m.cfg.Blame(ctx, err); yes {
		e.reason, e.message = AgentUnfit, why+": "+e.message
	} else if errdefs.IsInvalidArgument(err) || errdefs.IsPermissionDenied(err) {
		e.reason = Refused
	}
	return e
}

// hold sets the container for other goroutines. Only live and the functions that it calls change
// it.
func (k *Kernel) hold(c runtime.Container) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.container = c
}

var errLost = errors.New("container lost")

// bring brings the kernel to the running phase, by creating its container or by adopting the one of
// an earlier agent.
func (k *Kernel) bring(ctx context.Context) error {
	if k.stopRequest() != nil && k.container == nil {
		return context.Canceled
	}
	creating := k.State().Phase == agentpb.KernelState_CREATING
	if k.container != nil {
		state, err := k.container.State(ctx)
		if err != nil {
			return fmt.Errorf("inspect container: %w", err)
		}
		switch {
		case state.Phase == runtime.Running || state.Phase == runtime.Exited:
			k.adopt()
			return nil
		case !creating:
			return errLost
		}
		// The container was created only in part. The start is repeated if that is safe.
		if err := k.container.Remove(ctx); err != nil {
			return fmt.Errorf("remove incomplete container: %w", err)
		}
		k.hold(nil)
	} else if !creating {
		return errLost
	}
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-k.stopping:
			cancel()
		case <-starting.Done():
		}
	}()
	return k.start(starting)
}

// adopt continues with a container that an earlier agent started.
func (k *Kernel) adopt() {
	if k.State().Phase == agentpb.KernelState_CREATING {
		k.running()
	}
}

func (k *Kernel) running() {
	k.publish(func(s *agentpb.KernelState) {
		s.Phase, s.StartedUnixMs, s.Message = agentpb.KernelState_RUNNING, time.Now().UnixMilli(), ""
	})
}

// attend waits until the container ends, and ends it on request.
func (k *Kernel) attend(ctx context.Context) (end, error) {
	type result struct {
		exit runtime.Exit
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		exit, err := k.container.Wait(ctx)
		ended <- result{exit, err}
	}()
	writing, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer stop()
	keeping.Go(func() { k.keepLogWritten(writing) })
	keeping.Go(func() { k.watchRoot(writing) })
	stopChanged := k.stopChanged
	if k.stopRequest() != nil {
		// The request came before the agent restarted, or while it started.
		select {
		case stopChanged <- struct{}{}:
		default:
		}
	}
	var kill <-chan time.Time
	asked, kills := false, 0
	for {
		select {
		case <-ctx.Done():
			return end{}, ctx.Err()
		case r := <-ended:
			if errdefs.IsNotFound(r.err) {
				return k.why(ctx, end{code: 137, reason: Lost, message: "container no longer exists", at: time.Now()}), nil
			}
			if r.err != nil {
				return end{}, r.err // the error of the context
			}
			return k.why(ctx, end{code: r.exit.Code, reason: Completed, at: r.exit.Time}), nil
		case <-stopChanged:
			if !asked {
				k.say(agentpb.KernelState_STOPPING, k.stopRequest().Reason)
				k.awaitRunner(ctx)
				k.signal(ctx, syscall.SIGTERM)
				asked = true
			}
			kill = time.After(time.Until(k.stopRequest().deadline()))
		case <-kill:
			k.signal(ctx, syscall.SIGKILL)
			if kills++; kills > 1 {
				k.say(agentpb.KernelState_STOPPING, fmt.Sprintf("stuck: does not end after SIGKILL, tried %d times", kills))
			}
			kill = time.After(killAgain)
		}
	}
}

// why returns the reason of the end. A stop request has precedence over the exit of the process.
func (k *Kernel) why(ctx context.Context, e end) end {
	if request := k.stopRequest(); request != nil {
		e.reason, e.message = Terminated, request.Reason
		return e
	}
	if e.reason != Completed || e.code == 0 {
		return e
	}
	if c, ok := k.container.(runtime.RootChecker); ok {
		problem, lost := c.RootProblem(ctx)
		if lost {
			e.reason, e.message = Lost, problem
			return e
		}
		e.message = problem // perhaps the cause
	}
	stats, err := k.container.Stats(ctx)
	if err == nil && stats.OOMKills > 0 {
		e.reason, e.message = OOMKilled, "a process needed more memory than the session has"
	} else if full := k.diskFull(); full != "" {
		e.reason, e.message = DiskExceeded, full
	}
	return e
}

func (k *Kernel) say(phase agentpb.KernelState_Phase, message string) {
	k.publish(func(s *agentpb.KernelState) { s.Phase, s.Message = phase, message })
}

func (k *Kernel) signal(ctx context.Context, s syscall.Signal) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := k.container.Kill(ctx, s); err != nil && !errdefs.IsNotFound(err) {
		k.m.cfg.Logger.Warn("signal not sent", "kernel", k.ID, "signal", s, "error", err)
	}
}

// awaitRunner waits until the first process of the container forwards signals, for at most a second.
// Under a runtime that hides the process it returns at once.
func (k *Kernel) awaitRunner(ctx context.Context) {
	s, err := k.container.State(ctx)
	if err != nil || s.Phase != runtime.Running || s.PID <= 0 {
		return
	}
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", s.PID))
		if err != nil || !starting(strings.TrimSpace(string(name))) {
			return
		}
	}
}

// starting reports whether a process of this name is runc or the runner before it is ready.
func starting(name string) bool {
	return name == runner.Name || strings.HasPrefix(name, "runc:[")
}

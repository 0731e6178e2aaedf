package session

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// drainTime is how long the rest of a log can be delayed after its session has ended. The agent
// sends it within milliseconds, unless the agent is lost.
const drainTime = 20 * time.Second

// watcher watches one batch session to its end.
type watcher struct {
	app    *cli.App
	client *client.Client
	id     string
	name   string
	keep   bool
	raw    bool
	status *cli.StatusLine

	interrupted atomic.Bool

	mu      sync.Mutex
	state   client.SessionState
	changed chan struct{} // closed and replaced at every change
	lost    error         // the error after which the state is no longer updated
}

// run streams the session's output and returns its exit code.
func (r *watcher) run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.changed = make(chan struct{})
	r.state.Status = "PENDING"
	r.status.Session(r.name, r.state)
	var watching sync.WaitGroup
	watching.Go(func() { r.watch(ctx) })
	defer watching.Wait()
	defer cancel(nil)

	s, err := r.wait(ctx, func(s client.SessionState) bool { return s.Ended() || s.Started() && s.MainKernel() != "" })
	if err != nil {
		return 0, err
	}
	r.status.Clear()
	if s.Started() && s.MainKernel() != "" {
		if err := r.stream(ctx, s.MainKernel()); err != nil {
			return 0, err
		}
	}
	if s, err = r.wait(ctx, func(s client.SessionState) bool { return s.Ended() }); err != nil {
		return 0, err
	}
	return r.outcome(s)
}

func (r *watcher) watch(ctx context.Context) {
	err := r.client.WatchSession(ctx, r.id, r.paused, func(s client.SessionState) bool {
		r.update(s, nil)
		return !s.Ended()
	})
	if err != nil {
		r.update(client.SessionState{}, fmt.Errorf("session %s can no longer be followed, but may still run: %w", r.name, err))
	}
}

func (r *watcher) update(s client.SessionState, lost error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lost != nil {
		r.lost = lost
	} else {
		r.state = s
		r.status.Session(r.name, s)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait returns the first state that satisfies the condition.
func (r *watcher) wait(ctx context.Context, good func(client.SessionState) bool) (client.SessionState, error) {
	for {
		r.mu.Lock()
		s, lost, changed := r.state, r.lost, r.changed
		r.mu.Unlock()
		if good(s) || lost != nil {
			return s, lost
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
}

// stream copies the log. A server that stops ends its streams in the same way as a complete log, so
// only a read that began after the session's end is the last one.
func (r *watcher) stream(ctx context.Context, kernel string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log := client.LogStream{Kernel: kernel, Follow: true, Warn: r.paused}
	out := &drain{w: cli.Calm(r.app.Out, r.raw), stop: func() { cancel(errStuck) }}
	defer out.Stop()
	var ending sync.WaitGroup
	ending.Go(func() {
		if _, err := r.wait(ctx, func(s client.SessionState) bool { return s.Ended() }); err == nil {
			out.Begin()
		}
	})
	defer ending.Wait()
	defer cancel(nil)
	for {
		r.mu.Lock()
		last := r.state.Ended()
		r.mu.Unlock()
		err := log.CopyTo(ctx, r.client, out)
		switch {
		case context.Cause(ctx) == errStuck:
			r.note("the rest of the log did not come within %s; see: berth session logs %s", drainTime, r.id)
			return nil
		case errdefs.IsNotFound(err) && last:
			return nil
		case err != nil && !errdefs.IsNotFound(err):
			return err
		case last:
			return nil
		}
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
}

// settle waits briefly for a change of the session.
func (r *watcher) settle(ctx context.Context) error {
	r.mu.Lock()
	changed, lost, over := r.changed, r.lost, r.state.Ended()
	r.mu.Unlock()
	if lost != nil || over {
		return lost
	}
	select {
	case <-changed:
	case <-time.After(time.Second):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// interrupt ends the session at the first call, and stops watching at the second.
func (r *watcher) interrupt(ctx context.Context, leave context.CancelCauseFunc) {
	if r.keep || r.interrupted.Swap(true) {
		r.note("left session %s; see: berth session show %s", r.name, r.id)
		leave(errLeft)
		return
	}
	r.note("ending session %s; press Ctrl-C again to leave", r.name)
	if _, err := r.client.TerminateSession(ctx, r.id, false); err != nil && !errdefs.IsFailedPrecondition(err) {
		r.note("session %s was not ended: %s", r.name, cli.OneLine(err))
	}
}

func (r *watcher) paused(err error) {
	if !errdefs.IsUnavailable(err) {
		r.note("berth: %s", cli.OneLine(err))
		return
	}
	r.status.Pause(cli.OneLine(err))
}

func (r *watcher) note(format string, args ...any) {
	r.status.Clear()
	r.app.Note(format, args...)
}

var errStuck = fmt.Errorf("the log does not continue: %w", errdefs.ErrUnavailable)

// drain passes writes on. After Begin, it calls stop when there was no write for drainTime.
type drain struct {
	w     io.Writer
	stop  func()
	mu    sync.Mutex
	timer *time.Timer
}

func (d *drain) Begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(drainTime, d.stop)
}

func (d *drain) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (d *drain) Write(p []byte) (int, error) {
	d.mu.Lock()
	if d.timer != nil {
		d.timer.Reset(drainTime)
	}
	d.mu.Unlock()
	return d.w.Write(p)
}

package containerd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runtime"
)

// outputGrace limits the wait for output after a command has exited. A child that the command left
// in the background could keep the output open forever.
const outputGrace = time.Second

// process implements runtime.Process.
type process struct {
	process client.Process
	ended   <-chan client.ExitStatus
	stdin   *input
}

// Exec starts a command with the container's user and limits.
func (c *container) Exec(ctx context.Context, e runtime.ExecSpec) (runtime.Process, error) {
	ctx = named(ctx)
	t, err := c.task(ctx)
	if err != nil {
		return nil, err
	}
	record, err := c.record(ctx)
	if err != nil {
		return nil, err
	}
	spec, err := record.Spec(ctx)
	if err != nil {
		return nil, fmt.Errorf("spec of container %s: %w", c.ID(), err)
	}
	p := spec.Process
	p.Args, p.Terminal = e.Command, e.TTY
	p.Env = append(p.Env, e.Env...)
	if e.TTY {
		p.Env = append([]string{"TERM=xterm-256color"}, p.Env...)
		if e.Columns > 0 && e.Rows > 0 {
			p.ConsoleSize = &specs.Box{Width: uint(e.Columns), Height: uint(e.Rows)}
		}
	}
	stdin := &input{Reader: e.Stdin, ended: make(chan struct{})}
	streams := []cio.Opt{cio.WithFIFODir(filepath.Join(c.runtime.cfg.Dir, "fifo")), stdin.with(e)}
	if e.TTY {
		streams = append(streams, cio.WithTerminal)
	}
	id := "exec-" + uuid.NewString()
	exec, err := t.Exec(ctx, id, p, cio.NewCreator(streams...))
	if err != nil {
		return nil, fmt.Errorf("prepare command in %s: %w", c.ID(), err)
	}
	ended, err := exec.Wait(context.WithoutCancel(ctx))
	if err == nil {
		err = exec.Start(ctx)
	}
	if err != nil {
		discard(ctx, exec)
		return nil, fmt.Errorf("start command in %s: %w: %w", c.ID(), err, errdefs.ErrInvalidArgument)
	}
	go stdin.close(context.WithoutCancel(ctx), exec)
	return &process{process: exec, ended: ended, stdin: stdin}, nil
}

// input detects the end of the caller's input. The shim keeps a command's stdin open until CloseIO
// is called.
type input struct {
	io.Reader
	once  sync.Once
	ended chan struct{}
}

func (in *input) with(e runtime.ExecSpec) cio.Opt {
	if e.Stdin == nil {
		in.end()
		return cio.WithStreams(nil, e.Stdout, e.Stderr)
	}
	return cio.WithStreams(in, e.Stdout, e.Stderr)
}

func (in *input) Read(p []byte) (int, error) {
	n, err := in.Reader.Read(p)
	if err != nil {
		in.end()
	}
	return n, err
}

func (in *input) end() { in.once.Do(func() { close(in.ended) }) }

// close calls CloseIO after the end of the input. It returns when the input or the command has
// ended.
func (in *input) close(ctx context.Context, p client.Process) {
	<-in.ended
	if in.Reader != nil {
		_ = p.CloseIO(ctx, client.WithStdinCloser)
	}
}

func discard(ctx context.Context, p client.Process) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	_, _ = p.Delete(ctx, client.WithProcessKill)
}

func (p *process) Wait(ctx context.Context) (int, error) {
	ctx = named(ctx)
	var status client.ExitStatus
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case status = <-p.ended:
	}
	p.stdin.end()
	drained := make(chan struct{})
	go func() {
		p.process.IO().Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(outputGrace):
	case <-ctx.Done():
	}
	// The shim waits up to 10 s for output that does not end; the caller does not wait for this.
	go discard(ctx, p.process)
	code, _, err := status.Result()
	if err != nil {
		return 0, fmt.Errorf("command ended unobserved: %w", err)
	}
	return int(code), nil
}

func (p *process) Kill(ctx context.Context, signal syscall.Signal) error {
	return p.process.Kill(named(ctx), signal)
}

func (p *process) Resize(ctx context.Context, columns, rows uint32) error {
	return p.process.Resize(named(ctx), columns, rows)
}

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/logs"
	"github.com/berthhq/berth/agent/runner"
)

const (
	// logDrain is for how long the end of a kernel waits for its log to be whole.
	logDrain = 5 * time.Second
	// A log writer that does not start is tried again, at first after
	// writerPause, then ever more rarely.
	writerPause    = 100 * time.Millisecond
	writerPauseMax = 10 * time.Second
	// writerReady bounds the start of a log writer, a program of a few syscalls.
	writerReady = 10 * time.Second
)

// keepLogWritten starts the kernel's log writer again whenever it has died,
// until the context ends. The shim starts the first one and does not care what
// becomes of it; the container's process 1 keeps the pipes, so that output waits
// in them meanwhile. A writer outlives the agent.
func (k *Kernel) keepLogWritten(ctx context.Context) {
	var writer *exec.Cmd
	pause := writerPause
	for {
		err := logs.AwaitNoWriter(ctx, k.LogDir())
		if writer != nil && ctx.Err() == nil {
			_ = writer.Wait() // it has let go of the log, so it is gone
		}
		if ctx.Err() != nil || errdefs.IsNotFound(err) { // NotFound: a runtime without log writers
			return
		}
		if err == nil {
			writer, err = k.startLogWriter(ctx)
		}
		if err == nil {
			k.m.cfg.Logger.Warn("log writer died and was started again", "kernel", k.ID)
			pause = writerPause
			continue
		}
		if ctx.Err() == nil {
			k.m.cfg.Logger.Warn("log writer died and does not start", "kernel", k.ID, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, writerPauseMax)
		}
	}
}

// startLogWriter starts a writer on the output pipes of the container's process 1
// and returns once it writes.
func (k *Kernel) startLogWriter(ctx context.Context) (*exec.Cmd, error) {
	state, err := k.container.State(ctx)
	if err != nil {
		return nil, err
	}
	if state.PID == 0 {
		return nil, fmt.Errorf("container has no process: %w", errdefs.ErrFailedPrecondition)
	}
	pipes, err := logs.Pipes(k.LogDir(), state.PID)
	if err != nil {
		return nil, err
	}
	ready, told, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	cmd := exec.Command(k.m.cfg.Runner, "log", k.logSpec().String())
	cmd.ExtraFiles = append(pipes, told)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("start log writer: %w", err)
	}
	_ = ready.SetReadDeadline(time.Now().Add(writerReady))
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("start log writer: %w", errors.Join(err, cmd.Wait()))
	}
	return cmd, nil
}

// awaitLog lets a log writer that the agent started come to the end of the
// output. The shim waits for its own.
func (k *Kernel) awaitLog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, logDrain)
	defer cancel()
	err := logs.AwaitNoWriter(ctx, k.LogDir())
	if err != nil && !errdefs.IsNotFound(err) {
		k.m.cfg.Logger.Warn("log is not whole", "kernel", k.ID, "error", err)
	}
}

func (k *Kernel) logSpec() runner.LogSpec {
	s := runner.LogSpec{Dir: k.LogDir(), FileBytes: k.m.cfg.LogBytes, Files: k.m.cfg.LogFiles}
	if s.FileBytes == 0 {
		s.FileBytes = logs.DefaultFileBytes
	}
	if s.Files == 0 {
		s.Files = logs.DefaultFiles
	}
	return s
}

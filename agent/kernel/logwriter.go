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
	// logDrain limits how long the end of a kernel waits for its complete log.
	logDrain = 5 * time.Second
	// A log writer that fails to start is retried with a back-off between these two pauses.
	writerPause    = 100 * time.Millisecond
	writerPauseMax = 10 * time.Second
	// writerReady limits the start of a log writer, which makes only a few system calls.
	writerReady = 10 * time.Second
)

// keepLogWritten restarts the kernel's log writer whenever it has died, until the context ends. The
// shim starts only the first writer. The container's process 1 keeps the pipes open, so output
// waits in them until the next writer runs. A writer survives the agent.
func (k *Kernel) keepLogWritten(ctx context.Context) {
	var writer *exec.Cmd
	pause := writerPause
	for {
		err := logs.AwaitNoWriter(ctx, k.LogDir())
		if writer != nil && ctx.Err() == nil {
			_ = writer.Wait() // it has released the log, so it is exiting
		}
		if ctx.Err() != nil || errdefs.IsNotFound(err) { // NotFound: this runtime has no log writers
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
			k.m.cfg.Logger.Warn("log writer died and cannot be started", "kernel", k.ID, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, writerPauseMax)
		}
	}
}

// startLogWriter starts a writer on the output pipes of the container's process 1, and returns when
// it is ready.
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
	ready, readyWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	cmd := exec.Command(k.m.cfg.Runner, "log", k.logSpec().String())
	cmd.ExtraFiles = append(pipes, readyWriter)
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

// awaitLog waits until a log writer that the agent started has read all output. The shim waits for
// the writer that it started.
func (k *Kernel) awaitLog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, logDrain)
	defer cancel()
	err := logs.AwaitNoWriter(ctx, k.LogDir())
	if err != nil && !errdefs.IsNotFound(err) {
		k.m.cfg.Logger.Warn("log is incomplete", "kernel", k.ID, "error", err)
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

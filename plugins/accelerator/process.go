package accelerator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
)

// process is a started plugin and the directory of its socket.
type process struct {
	plugin *plugin.Client
	pid    int
	dir    string
	end    context.CancelFunc // kills it and whatever it started
	gone   chan struct{}      // closed when the kernel has reported the end
}

// start runs the program. The kernel sends the parent-death signal when the
// *thread* that forked ends, and Go ends idle threads, so every plugin has a
// locked thread of its own that forks it and then sleeps until it is gone.
func start(ctx context.Context, o Options) (*process, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	cfg, err := config(life, o)
	if err != nil {
		end()
		return nil, err
	}
	dir, err := os.MkdirTemp(o.SocketDir, "plugin") // mode 0700
	if err != nil {
		end()
		return nil, err
	}
	cfg.Cmd.Env = append(cfg.Cmd.Env, plugin.EnvUnixSocketDir+"="+dir)
	p := &process{plugin: plugin.NewClient(cfg), dir: dir, end: end, gone: make(chan struct{})}

	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		defer close(p.gone)
		_, err := p.plugin.Start()
		if proc := cfg.Cmd.Process; proc != nil {
			p.pid = proc.Pid
		}
		started <- err
		if err == nil {
			waitExit(p.pid)
			// What it started goes with it, also because a child that keeps
			// the log pipe open would hide the end.
			_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		}
	}()
	select {
	case err = <-started:
	case <-ctx.Done():
		end()
		if err = <-started; err == nil {
			err = p.stop()
		}
		return nil, errors.Join(context.Cause(ctx), err, os.RemoveAll(dir))
	}
	if err != nil {
		end()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// stop asks the process to end, ends it, and removes its socket.
func (p *process) stop() error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.plugin.Kill()
	}()
	select {
	case <-ended:
	case <-time.After(closeGrace):
		// A stopped or stuck process does not answer the polite request.
		p.end()
		<-ended
	}
	<-p.gone
	p.end()
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove socket of plugin: %w", err)
	}
	return nil
}

// waitExit sleeps until the child has ended and leaves it to be reaped by its
// owner.
func waitExit(pid int) {
	const pPID, exited, leave = 1, 0x4, 0x1000000 // P_PID, WEXITED, WNOWAIT
	var info [128]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), exited|leave, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// bridge hands go-plugin's and the plugin's log lines to slog.
func bridge(l *slog.Logger) hclog.Logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	// The logger itself writes nothing; what counts is the sink, and the level
	// that lets lines through to it.
	out := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Debug, Output: nowhere{}})
	out.RegisterSink(sink{l})
	return out
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

type sink struct{ to *slog.Logger }

func (s sink) Accept(name string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Info:
		to = slog.LevelInfo
	case hclog.Warn:
		to = slog.LevelWarn
	case hclog.Error:
		to = slog.LevelError
	}
	if name == "" && to > slog.LevelDebug {
		to = slog.LevelDebug // go-plugin's own running commentary; errors also come back as values
	}
	s.to.Log(context.Background(), to, msg, args...)
}

// Package process starts the programs of plugins, of any contract, and ends them.
// A program runs with a private socket, nothing of the host's environment but PATH,
// LANG and TMPDIR, in a process group of its own, and dies with the host, however
// that ends.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

const (
	startTimeout = 15 * time.Second // a healthy Go plugin needs 0.1 s, a Python one 0.2 s
	closeGrace   = 3 * time.Second  // go-plugin itself waits 2 s before it kills
)

// ErrChecksum is in Launch's error when the program is not the one expected.
var ErrChecksum = plugin.ErrChecksumsDoNotMatch

// Options say which program to start and how.
type Options struct {
	Path string
	// SHA256 of the program in hexadecimal; empty = not checked.
	SHA256 string
	// Env is added to PATH, LANG and TMPDIR; nothing else is inherited.
	Env []string
	// Plain turns mutual TLS off for plugins that cannot do go-plugin's
	// variant (Python); the socket's directory is then the only guard.
	Plain bool
	// SocketDir holds the directory with the socket; empty = $TMPDIR. Socket
	// paths are limited to 107 bytes.
	SocketDir string
	// StartTimeout bounds the time to the first answer; 0 = 15 s.
	StartTimeout time.Duration
	Logger       *slog.Logger // nil = discard
}

// Process is a started plugin.
type Process struct {
	plugin *plugin.Client
	pid    int
	dir    string             // of its socket
	end    context.CancelFunc // kills it and whatever it started
	gone   chan struct{}      // closed when the kernel has reported the end
	done   <-chan struct{}    // closed when go-plugin knows of it

	once   sync.Once
	closed error
}

func (p *Process) connect(service string) (*grpc.ClientConn, error) {
	proto, err := p.plugin.Client()
	if err != nil {
		return nil, err
	}
	made, err := proto.Dispense(service)
	if err != nil {
		return nil, err
	}
	l := made.(*link) // glue makes nothing else
	p.done = l.exited
	return l.conn, nil
}

// start runs the program. The kernel sends the parent-death signal when the
// *thread* that forked ends, and Go ends idle threads, so every plugin has a
// locked thread of its own that forks it and then sleeps until it is gone.
func start(ctx context.Context, c Contract, o Options) (*Process, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	cfg, err := Config(life, c, o)
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
	p := &Process{plugin: plugin.NewClient(cfg), dir: dir, end: end, gone: make(chan struct{})}

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
			err = p.Close()
		}
		return nil, errors.Join(context.Cause(ctx), err, os.RemoveAll(dir))
	}
	if err != nil {
		end()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// Pid is the plugin's process id.
func (p *Process) Pid() int { return p.pid }

// Version is the contract version both sides agreed on.
func (p *Process) Version() int { return p.plugin.NegotiatedVersion() }

// Done is closed when the process has ended, anyone who ended it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Close ends the process, politely for 3 s, waits until it is gone and removes its
// socket. It may be called again.
func (p *Process) Close() error {
	p.once.Do(func() { p.closed = p.stop() })
	return p.closed
}

func (p *Process) stop() error {
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

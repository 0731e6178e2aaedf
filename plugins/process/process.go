// Package process starts and ends the programs of plugins, for any contract. A program runs with a
// private socket and in its own process group. Of the host's environment it gets only PATH, LANG
// and TMPDIR. It dies with the host, however the host ends.
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
	closeGrace   = 3 * time.Second  // go-plugin waits 2 s itself before it kills the process
)

// ErrChecksum is in Launch's error if the program has the wrong checksum.
var ErrChecksum = plugin.ErrChecksumsDoNotMatch

// Options describe the program to start.
type Options struct {
	Path string
	// SHA256 of the program in hexadecimal; empty skips the check.
	SHA256 string
	// Env is added to PATH, LANG and TMPDIR; nothing else is inherited.
	Env []string
	// Plain disables mutual TLS for plugins that do not support go-plugin's variant, such as those
	// in Python. Then only the permissions of the socket's directory protect the connection.
	Plain bool
	// SocketDir is the parent of the directory with the socket; empty = $TMPDIR. Socket paths are
	// limited to 107 bytes.
	SocketDir string
	// StartTimeout limits the time to the first response; 0 = 15 s.
	StartTimeout time.Duration
	Logger       *slog.Logger // nil = discard
}

// Process is a running plugin.
type Process struct {
	plugin *plugin.Client
	pid    int
	dir    string             // of its socket
	end    context.CancelFunc // kills it and its children
	gone   chan struct{}      // closed when the kernel has reported the exit
	done   <-chan struct{}    // closed when go-plugin has noticed the exit

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
	l := made.(*link) // glue returns no other type
	p.done = l.exited
	return l.conn, nil
}

// start starts the program. The kernel sends the parent-death signal when the *thread* that forked
// the process exits, and Go ends idle threads. So every plugin has a locked thread that forks it
// and then blocks until its exit.
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
			// Its children are killed as well: a child that keeps the log pipe open would hide the
			// exit.
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

// Pid returns the plugin's process id.
func (p *Process) Pid() int { return p.pid }

// Version returns the common contract version.
func (p *Process) Version() int { return p.plugin.NegotiatedVersion() }

// Done returns a channel that is closed when the process has exited for any reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Close asks the process to exit, kills it after 3 s, waits for its exit and removes its socket. It
// can be called repeatedly.
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
		// A stopped or hanging process does not respond to the request.
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

// waitExit blocks until the child has exited, without reaping it: its owner does this.
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

package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/service/proc"
)

// Daemon is a containerd in a child process, which is restarted whenever it exits.
type Daemon struct {
	cfg Config
	sup *proc.Supervisor
}

// Start runs command, which must call Run with the same cfg, and returns when the socket accepts
// connections. The child exits with this process; containers do not.
func Start(ctx context.Context, cfg Config, command []string, logger *slog.Logger) (*Daemon, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("start containerd: %q is not an absolute path: %w", cfg.Dir, errdefs.ErrInvalidArgument)
	}
	if len(command) == 0 {
		return nil, fmt.Errorf("start containerd: no command: %w", errdefs.ErrInvalidArgument)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("start containerd: not root: %w", errdefs.ErrFailedPrecondition)
	}
	// The socket of a killed predecessor would exist without a listener.
	_ = os.Remove(cfg.Address())
	sup, err := proc.Start(ctx, proc.Spec{
		Name: "containerd",
		Command: func() (*exec.Cmd, error) {
			cmd := exec.Command(command[0], command[1:]...)
			// The shim looks for runc in PATH when it is queried for its features. Our runc is in
			// the directory of our programs.
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(command[0])+":"+os.Getenv("PATH"))
			return cmd, nil
		},
		Ready:        cfg.answers,
		StopSignal:   syscall.SIGTERM,
		Grace:        5 * time.Second,
		DeathSignal:  syscall.SIGKILL, // SIGKILL is safe for its database, whose lock is free at once
		StartTimeout: 20 * time.Second,
		Level:        slog.LevelWarn,
		Logger:       logger,
	})
	if err != nil {
		return nil, err
	}
	return &Daemon{cfg: cfg, sup: sup}, nil
}

// Config returns the paths that a client needs.
func (d *Daemon) Config() Config { return d.cfg }

// PID returns the daemon's process id, or 0 while it is being restarted.
func (d *Daemon) PID() int { return d.sup.PID() }

// Done returns a channel that is closed after Stop.
func (d *Daemon) Done() <-chan struct{} { return d.sup.Done() }

// Stop ends the daemon. Containers continue.
func (d *Daemon) Stop(ctx context.Context) error { return d.sup.Stop(ctx) }

// answers returns nil once the server accepts connections. The gRPC listener is the last part that
// starts.
func (c Config) answers(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.Address())
	if err != nil {
		return err
	}
	return conn.Close()
}

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

// Daemon is a containerd that runs as our child and is started again when it ends.
type Daemon struct {
	cfg Config
	sup *proc.Supervisor
}

// Start runs command, which must call Run with the same cfg, and returns when its
// socket answers. The child ends with this process; containers do not.
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
	// A socket left by a killed predecessor would answer no one, but exist.
	_ = os.Remove(cfg.Address())
	sup, err := proc.Start(ctx, proc.Spec{
		Name: "containerd",
		Command: func() (*exec.Cmd, error) {
			cmd := exec.Command(command[0], command[1:]...)
			// Asked about itself, the shim looks for runc; ours lies beside us.
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(command[0])+":"+os.Getenv("PATH"))
			return cmd, nil
		},
		Ready:        cfg.answers,
		StopSignal:   syscall.SIGTERM,
		Grace:        5 * time.Second,
		DeathSignal:  syscall.SIGKILL, // its database is made for that, and its lock is free at once
		StartTimeout: 20 * time.Second,
		Level:        slog.LevelWarn,
		Logger:       logger,
	})
	if err != nil {
		return nil, err
	}
	return &Daemon{cfg: cfg, sup: sup}, nil
}

// Config tells the paths that a client needs.
func (d *Daemon) Config() Config { return d.cfg }

// PID is the daemon's process id, 0 while it is being started again.
func (d *Daemon) PID() int { return d.sup.PID() }

// Done is closed after Stop.
func (d *Daemon) Done() <-chan struct{} { return d.sup.Done() }

// Stop ends the daemon and leaves the containers alone.
func (d *Daemon) Stop(ctx context.Context) error { return d.sup.Stop(ctx) }

// answers reports whether the server takes connections; it listens last of all.
func (c Config) answers(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.Address())
	if err != nil {
		return err
	}
	return conn.Close()
}

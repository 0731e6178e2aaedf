// Package redis runs a private Redis server as a child of this process: a unix socket that only
// this user can use, no TCP, nothing stored on disk (everything that Berth stores in Redis can be
// lost). berthd up and tests import it.
package redis

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os/exec"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/service/proc"
)

const socket = "redis.sock"

// Config is the configuration of the server.
type Config struct {
	// Dir contains its socket. If this process is root, the server runs as user redis.
	Dir string
	// MaxMemory limits the data; the least recently used keys are dropped first. 0 is 64 MiB.
	MaxMemory int64
	Logger    *slog.Logger
}

// Server is a running Redis.
type Server struct {
	room *proc.Room
	sup  *proc.Supervisor
}

// Start runs the server and returns when it answers.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("start redis: no redis-server found (run make setup): %w", errdefs.ErrFailedPrecondition)
	}
	room, err := proc.OpenRoom(cfg.Dir, "redis", "nobody")
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if cfg.MaxMemory == 0 {
		cfg.MaxMemory = 64 << 20
	}
	s := &Server{room: room}
	s.sup, err = proc.Start(ctx, proc.Spec{
		Name: "redis",
		Command: func() (*exec.Cmd, error) {
			cmd := exec.Command(bin,
				"--port", "0", "--unixsocket", proc.RoomPath+"/"+socket, "--unixsocketperm", "700",
				"--dir", proc.RoomPath, "--save", "", "--appendonly", "no", "--daemonize", "no",
				"--maxmemory", fmt.Sprint(cfg.MaxMemory), "--maxmemory-policy", "allkeys-lru",
				"--loglevel", "warning")
			return cmd, room.Enter(cmd)
		},
		Ready:        s.ready,
		StopSignal:   syscall.SIGTERM,
		Grace:        2 * time.Second,
		DeathSignal:  syscall.SIGKILL, // no data must be saved
		StartTimeout: 10 * time.Second,
		Level:        slog.LevelDebug,
		Logger:       cfg.Logger,
	})
	if err != nil {
		room.Close()
		return nil, err
	}
	return s, nil
}

// Addr is the path of the server's unix socket.
func (s *Server) Addr() string { return s.room.Socket(socket) }

// URL is the address as go-redis's ParseURL reads it.
func (s *Server) URL() string {
	return (&url.URL{Scheme: "unix", Path: s.Addr()}).String()
}

// PID is the server's process id, 0 while it is being restarted.
func (s *Server) PID() int { return s.sup.PID() }

// Done is closed after Stop.
func (s *Server) Done() <-chan struct{} { return s.sup.Done() }

// Stop ends the server; its data is lost.
func (s *Server) Stop(ctx context.Context) error {
	defer s.room.Close()
	return s.sup.Stop(ctx)
}

// ready sends one PING, without the retries of a client.
func (s *Server) ready(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	if d, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(d); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	answer := make([]byte, len("+PONG\r\n"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if string(answer) != "+PONG\r\n" {
		return fmt.Errorf("redis answers %q: %w", answer, errdefs.ErrUnavailable)
	}
	return nil
}

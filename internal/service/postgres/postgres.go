// Package postgres runs a private PostgreSQL server as a child of this process: one data directory,
// a unix socket that only this user can use, no TCP. berthd up and tests import it; a production
// manager gets the address of a real cluster.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthhq/berth/internal/service/proc"
)

const (
	// Database is the database that Start creates, owned by the role of the same name.
	Database = "berth"
	// superuser is the bootstrap role. Only the user of this process can log in with it.
	superuser = "postgres"
	socket    = ".s.PGSQL.5432"
)

// Config is the configuration of the server.
type Config struct {
	// Dir contains all of its files. If this process is root, the server runs as user postgres.
	Dir string
	// Volatile trades safety for speed: a crash of the machine loses data. For tests. A killed
	// process loses nothing.
	Volatile bool
	Logger   *slog.Logger
}

// Server is a running PostgreSQL.
type Server struct {
	room *proc.Room
	sup  *proc.Supervisor
}

// Start creates the cluster if there is none, ends a server that an earlier process has left, and
// returns when the server accepts queries.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	room, err := proc.OpenRoom(cfg.Dir, "postgres")
	if err != nil {
		return nil, fmt.Errorf("start postgresql: %w", err)
	}
	c := cluster{bin: bin, room: room, volatile: cfg.Volatile, logger: cfg.Logger}
	if err := c.init(ctx); err != nil {
		room.Close()
		return nil, err
	}
	s := &Server{room: room}
	s.sup, err = proc.Start(ctx, proc.Spec{
		Name: "postgresql",
		Command: func() (*exec.Cmd, error) {
			if err := c.evict(); err != nil {
				return nil, err
			}
			return c.command()
		},
		Ready:        s.ready,
		StopSignal:   syscall.SIGINT, // fast: ends sessions, writes a checkpoint
		Grace:        20 * time.Second,
		DeathSignal:  syscall.SIGINT,
		StartTimeout: time.Minute,     // recovery after a crash
		Level:        slog.LevelDebug, // every failed statement is logged
		Logger:       cfg.Logger,
	})
	if err != nil {
		room.Close()
		return nil, err
	}
	return s, nil
}

// DSN is the address of a database for the role that owns Database.
func (s *Server) DSN(database string) string { return s.dsn(Database, database) }

// Find returns the address of Database of the server that another process of the same user runs in
// a directory. It is valid until close is called.
func Find(dir string) (dsn string, close func() error, err error) {
	if _, err := os.Stat(filepath.Join(dir, socket)); err != nil {
		return "", nil, fmt.Errorf("no postgresql runs in %s: %w", dir, err)
	}
	room, err := proc.OpenRoom(dir, "postgres")
	if err != nil {
		return "", nil, err
	}
	return (&Server{room: room}).DSN(Database), room.Close, nil
}

// PID is the process id of the postmaster, 0 while it is being restarted.
func (s *Server) PID() int { return s.sup.PID() }

// Done is closed after Stop.
func (s *Server) Done() <-chan struct{} { return s.sup.Done() }

// Stop ends the server after a last checkpoint.
func (s *Server) Stop(ctx context.Context) error {
	defer s.room.Close()
	return s.sup.Stop(ctx)
}

func (s *Server) dsn(role, database string) string {
	host := strings.TrimSuffix(s.room.Socket(socket), "/"+socket)
	q := url.Values{"host": {host}, "user": {role}}
	return (&url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: q.Encode()}).String()
}

// ready connects, and creates Database if it does not exist yet.
func (s *Server) ready(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.dsn(Database, Database))
	if err == nil {
		return conn.Close(ctx)
	}
	if !missing(err) {
		return err
	}
	conn, err = pgx.Connect(ctx, s.dsn(superuser, superuser))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE ROLE "+Database+" LOGIN CREATEDB"); err != nil && !hasCode(err, "42710") {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+Database+" OWNER "+Database)
	return err
}

// missing reports whether the server is up but lacks the role or the database.
func missing(err error) bool {
	return hasCode(err, "28000") || hasCode(err, "3D000")
}

func hasCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

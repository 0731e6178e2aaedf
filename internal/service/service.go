// Package service runs the stores of one machine (PostgreSQL, Redis, etcd) as
// private parts of this process, from one data directory. berthd up and tests
// import it; the same clients talk to real clusters in production.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/internal/service/etcd"
	"github.com/berthhq/berth/internal/service/postgres"
	"github.com/berthhq/berth/internal/service/redis"
)

// Config is the configuration of the stores.
type Config struct {
	// Dir is created if it is missing, and used by one process at a time.
	Dir string
	// Volatile trades durability for speed, for tests.
	Volatile bool
	Logger   *slog.Logger
}

// Stores are the running stores.
type Stores struct {
	Postgres *postgres.Server
	Redis    *redis.Server
	Etcd     *etcd.Server
	lock     *os.File
}

// Start starts all stores concurrently and returns when each one answers. After an error, none is
// running.
func Start(ctx context.Context, cfg Config) (*Stores, error) {
	lock, err := Lock(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s := &Stores{lock: lock}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.Postgres, err = postgres.Start(gctx, postgres.Config{Dir: filepath.Join(cfg.Dir, "postgres"), Volatile: cfg.Volatile, Logger: cfg.Logger})
		return err
	})
	g.Go(func() (err error) {
		s.Redis, err = redis.Start(gctx, redis.Config{Dir: filepath.Join(cfg.Dir, "redis"), Logger: cfg.Logger})
		return err
	})
	g.Go(func() (err error) {
		s.Etcd, err = etcd.Start(gctx, etcd.Config{Dir: filepath.Join(cfg.Dir, "etcd"), Volatile: cfg.Volatile, Logger: cfg.Logger})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// Stop stops the stores concurrently. Close their clients first. After the end of ctx, remaining
// processes are killed.
func (s *Stores) Stop(ctx context.Context) error {
	var g errgroup.Group
	if s.Etcd != nil {
		g.Go(func() error { return s.Etcd.Stop(ctx) })
	}
	if s.Redis != nil {
		g.Go(func() error { return s.Redis.Stop(ctx) })
	}
	if s.Postgres != nil {
		g.Go(func() error { return s.Postgres.Stop(ctx) })
	}
	return errors.Join(g.Wait(), s.lock.Close())
}

// Lock creates dir and locks it for this process, until the file is closed or the process ends,
// even by SIGKILL.
func Lock(dir string) (*os.File, error) {
	// Other users can traverse it, because a container's own user must reach its root file system
	// below.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := io.ReadAll(io.LimitReader(f, 32))
		f.Close()
		return nil, fmt.Errorf("data directory %s is in use by process %s: %w", dir, strings.TrimSpace(string(pid)), errdefs.ErrFailedPrecondition)
	}
	if err := f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock data directory: %w", err)
		}
	}
	return f, nil
}

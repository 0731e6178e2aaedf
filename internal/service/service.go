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

// Config says where the stores live.
type Config struct {
	// Dir is made when missing and belongs to one process at a time.
	Dir string
	// Volatile gives up durability for speed. For tests.
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

// Start runs all stores side by side and returns when each one answers. An error
// means that none is left running.
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

// Stop ends the stores side by side. Close their clients first. When ctx ends,
// what still runs is killed.
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

// Lock makes dir and takes it for this process, until the file is closed or the
// process ends in whatever way.
func Lock(dir string) (*os.File, error) {
	// Others may pass through: a container's own user must reach its root below.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
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

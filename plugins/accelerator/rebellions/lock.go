package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// lockTimeout leaves most of Prepare's minute to rbln-smi.
	lockTimeout = 20 * time.Second
	lockEvery   = 50 * time.Millisecond
)

// locked runs do while no other program that respects the lock file changes RSD groups.
func (m *machine) locked(ctx context.Context, do func() error) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return status.Errorf(codes.Unavailable, "RSD groups are being changed: %v", ctx.Err())
	}
	path := m.Root(m.config.LockFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	defer f.Close() // also releases the lock
	end := time.After(lockTimeout)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return do()
		}
		select {
		case <-ctx.Done():
			return status.Errorf(codes.Unavailable, "another program holds %s: %v", m.config.LockFile, ctx.Err())
		case <-end:
			return status.Errorf(codes.Unavailable, "another program has held %s for %s", m.config.LockFile, lockTimeout)
		case <-time.After(lockEvery):
		}
	}
}

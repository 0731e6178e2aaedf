// Package testenv provides the real stores to tests: a fresh PostgreSQL database, Redis and etcd,
// private to the test and removed with the test process, even if it is killed. Only tests import
// it.
package testenv

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// removeWhenAlone waits for the end of its input, which is the end of the test process, and removes
// its directory. It retries, because the stores may still be writing.
const removeWhenAlone = `read -r _; for _ in $(seq 300); do rm -rf "$1" && exit; sleep 0.2; done`

// place is this process's directory for all stores. lifeline is the cleaner's input, which only the
// end of the process closes.
type place struct {
	dir      string
	lifeline io.Closer
}

// workPlace creates the directory. A shell that outlives the test process removes it, because a
// killed process cannot.
var workPlace = sync.OnceValues(func() (*place, error) {
	dir, err := os.MkdirTemp(fastDir(), "berth-test-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", removeWhenAlone, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start cleaner: %w", err)
	}
	return &place{dir, lifeline}, nil
})

// A database is a thousand small files: creating them in memory is five times as fast.
const (
	memory     = "/dev/shm"
	wantMemory = 2 << 30
)

// fastDir returns a directory in memory if there is enough and TMPDIR is not set.
func fastDir() string {
	if os.Getenv("TMPDIR") != "" {
		return ""
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < wantMemory {
		return ""
	}
	return memory
}

var count atomic.Int64

// freshDir returns a new directory for one store.
func freshDir(t testing.TB, name string) string {
	t.Helper()
	w, err := workPlace()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(w.dir, fmt.Sprintf("%s%d", name, count.Add(1)))
}

// logger writes warnings of the stores to the test's output.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

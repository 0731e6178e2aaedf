// Package testenv gives tests the real stores: a fresh PostgreSQL database, Redis
// and etcd, private to the test and gone with the test process, even when that is
// killed. Only tests import it.
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

// removeWhenAlone waits for the end of its input, which is the end of the test
// process, and removes its directory; the stores' last writes may come between.
const removeWhenAlone = `read -r _; for _ in $(seq 300); do rm -rf "$1" && exit; sleep 0.2; done`

// place is this process's directory for all stores. lifeline is the cleaner's
// input: held here, it is closed by the end of the process only.
type place struct {
	dir      string
	lifeline io.Closer
}

// workPlace makes it. A shell outlives us to remove it: a test process has no
// moment of its own to clean up in.
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

// A database is a thousand small files: five times quicker to make in memory.
const (
	memory     = "/dev/shm"
	wantMemory = 2 << 30
)

// fastDir is memory when there is plenty and TMPDIR does not ask otherwise.
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

// freshDir is a new directory for one store.
func freshDir(t testing.TB, name string) string {
	t.Helper()
	w, err := workPlace()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(w.dir, fmt.Sprintf("%s%d", name, count.Add(1)))
}

// logger shows what the stores complain about in the test's output.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

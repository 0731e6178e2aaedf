// Package containerdtest runs a containerd for a test: the slim daemon in a child process, which is
// the test binary itself.
package containerdtest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"

	"github.com/berthhq/berth/agent/lazy"
	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// lazyVariable is set in a child of the test binary that must act as the process of package lazy.
const lazyVariable = "BERTH_TEST_LAZY"

// dirVariable is set in a child of the test binary that must act as containerd.
const dirVariable = "BERTH_TEST_CONTAINERD_DIR"

// Main must be called from TestMain in packages that call Start or Command.
func Main(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := daemon.Run(ctx, daemon.Config{Dir: dir}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(lazyVariable) != "" {
		if err := lazy.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// LazyCommand returns a command that runs the test binary as the process of package lazy. The test is
// skipped if this machine cannot.
func LazyCommand(t testing.TB) []string {
	t.Helper()
	if err := lazy.Check(); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"/usr/bin/env", lazyVariable + "=1", self}
}

// Env is a running containerd and its programs.
type Env struct {
	runtimetest.Tools
	Socket string
	Daemon *daemon.Daemon
}

// Start runs containerd in a new directory until the test ends. The test fails if anything is still
// mounted then.
func Start(t testing.TB) Env {
	t.Helper()
	tools := runtimetest.Build(t)
	dir := Dir(t)
	cfg := daemon.Config{Dir: dir}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// containerd starts a shim once to query its features, and that shim looks for runc in PATH. If
	// this fails, containerd repeats the query before every start.
	path := "PATH=" + filepath.Dir(tools.Runc) + ":" + os.Getenv("PATH")
	d, err := daemon.Start(ctx, cfg, Command(t, dir, path), slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Errorf("stop containerd: %v", err)
		}
	})
	return Env{Tools: tools, Socket: cfg.Address(), Daemon: d}
}

// Command returns a command that runs the test binary as containerd in a directory, with additional
// variables.
func Command(t testing.TB, dir string, env ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append(append([]string{"/usr/bin/env"}, env...), dirVariable+"="+dir, self)
}

// Dir returns a temporary directory with a short path, because it contains sockets. It is removed
// at the end of the test, which fails if anything is still mounted in it.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range MountsBelow(t, dir) {
			t.Errorf("mount left: %s", m)
			_ = syscall.Unmount(m, syscall.MNT_DETACH)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// MountsBelow returns the mount points below a directory, innermost first.
func MountsBelow(t testing.TB, dir string) []string {
	t.Helper()
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := len(infos) - 1; i >= 0; i-- {
		out = append(out, infos[i].Mountpoint)
	}
	return out
}

// Cgroups returns the cgroup directories below a path, in all hierarchies.
func Cgroups(t testing.TB, path string) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"/sys/fs/cgroup" + path + "/*", "/sys/fs/cgroup/*" + path + "/*"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			if st, err := os.Stat(p); err == nil && st.IsDir() {
				out = append(out, p)
			}
		}
	}
	return out
}

// RemoveCgroup removes an empty parent cgroup from every hierarchy.
func RemoveCgroup(path string) {
	for _, pattern := range []string{"/sys/fs/cgroup" + path, "/sys/fs/cgroup/*" + path} {
		list, _ := filepath.Glob(pattern)
		for _, p := range list {
			_ = os.Remove(p)
		}
	}
}

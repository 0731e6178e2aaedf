// Package containerdtest gives a test a containerd of its own: the slim daemon
// in a child process, which is the test binary itself called again.
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

	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// dirVariable tells a child of the test binary to be containerd.
const dirVariable = "BERTH_TEST_CONTAINERD_DIR"

// Main is the body of TestMain in packages that call Start or Command.
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
	os.Exit(m.Run())
}

// Env is a running containerd and the programs that go with it.
type Env struct {
	runtimetest.Tools
	Socket string
	Daemon *daemon.Daemon
}

// Start runs containerd in a directory of its own until the test ends; then
// nothing that it mounted may be left.
func Start(t testing.TB) Env {
	t.Helper()
	tools := runtimetest.Build(t)
	dir := Dir(t)
	cfg := daemon.Config{Dir: dir}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// containerd asks a shim once what it can do, and that one looks for runc
	// in PATH; without it containerd would ask again before every start.
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

// Command starts the test binary as containerd of a directory, with more variables.
func Command(t testing.TB, dir string, env ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append(append([]string{"/usr/bin/env"}, env...), dirVariable+"="+dir, self)
}

// Dir is a short temporary directory (sockets lie in it), removed at the end,
// when no mount may be left in it.
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

// MountsBelow lists mount points below a directory, innermost first.
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

// Cgroups lists cgroup directories below a path, in whatever hierarchy.
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

// RemoveCgroup removes an empty parent in every hierarchy.
func RemoveCgroup(path string) {
	for _, pattern := range []string{"/sys/fs/cgroup" + path, "/sys/fs/cgroup/*" + path} {
		list, _ := filepath.Glob(pattern)
		for _, p := range list {
			_ = os.Remove(p)
		}
	}
}

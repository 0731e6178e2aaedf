package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// timeout bounds every wait, also on a machine that has other things to do.
const timeout = 2 * time.Minute

func TestMain(m *testing.M) { containerdtest.Main(m) }

func start(t *testing.T, dir string) *daemon.Daemon {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containerd needs root")
	}
	begun := time.Now()
	d, err := daemon.Start(t.Context(), daemon.Config{Dir: dir}, containerdtest.Command(t, dir), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(begun).Round(time.Millisecond))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Error(err)
		}
		os.RemoveAll(filepath.Dir(d.Config().Address())) // may lie outside dir
	})
	return d
}

func client(t *testing.T, d *daemon.Daemon) (*containerd.Client, context.Context) {
	t.Helper()
	c, err := containerd.New(d.Config().Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, namespaces.WithNamespace(t.Context(), "berth-test")
}

// sleeper runs a container out of the host's own programs, so it needs no image.
func sleeper(t *testing.T, ctx context.Context, c *containerd.Client, d *daemon.Daemon) containerd.Task {
	t.Helper()
	root := t.TempDir()
	mounts := []specs.Mount{}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		mounts = append(mounts, specs.Mount{Destination: dir, Source: dir, Type: "bind", Options: []string{"rbind", "ro"}})
	}
	con, err := c.NewContainer(ctx, "sleeper",
		containerd.WithRuntime(testenv.Bin(t, "containerd-shim-runc-v2"), &runcoptions.Options{BinaryName: testenv.Bin(t, "runc"), Root: d.Config().RuncRoot()}),
		containerd.WithNewSpec(oci.WithRootFSPath(root), oci.WithProcessArgs("/usr/bin/sleep", "1000"), oci.WithMounts(mounts),
			oci.WithCgroup(fmt.Sprintf("/berth-test-%d", os.Getpid()))))
	if err != nil {
		t.Fatal(err)
	}
	task, err := con.NewTask(ctx, cio.NullIO)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		if _, err := task.Delete(ctx, containerd.WithProcessKill); err != nil && !errdefs.IsNotFound(err) {
			t.Error(err)
		}
		if err := con.Delete(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := task.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return task
}

func TestContainersOutliveTheDaemon(t *testing.T) {
	d := start(t, t.TempDir())
	c, ctx := client(t, d)
	task := sleeper(t, ctx, c, d)

	old := d.PID()
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	wait.Until(t, "the daemon is started again", func() bool { return d.PID() != old && d.PID() != 0 })
	var con containerd.Container
	wait.For(t, func() (err error) {
		con, err = c.LoadContainer(ctx, "sleeper")
		return err
	})
	again, err := con.Task(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("back after %v", time.Since(begun).Round(time.Millisecond))
	if again.Pid() != task.Pid() {
		t.Errorf("process is %d, was %d", again.Pid(), task.Pid())
	}
	if st, err := again.Status(ctx); err != nil || st.Status != containerd.Running {
		t.Errorf("status is %v (%v), want running", st.Status, err)
	}
}

func TestLongDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a-directory-name-that-is-much-too-long-for-a-socket", "and-longer-still")
	d := start(t, dir)
	c, ctx := client(t, d)
	if ok, err := c.IsServing(ctx); err != nil || !ok {
		t.Errorf("serving: %v (%v)", ok, err)
	}
}

func TestStartTellsWhyNot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containerd needs root")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir     string
		command []string
		is      func(error) bool
	}{
		"relative":       {"here", []string{"true"}, errdefs.IsInvalidArgument},
		"no command":     {t.TempDir(), nil, errdefs.IsInvalidArgument},
		"ends at once":   {file, containerdtest.Command(t, file), errdefs.IsUnavailable},
		"does not exist": {t.TempDir(), []string{"/no/such/program"}, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := daemon.Config{Dir: tc.dir}
			if filepath.IsAbs(tc.dir) {
				defer os.RemoveAll(filepath.Dir(cfg.Address()))
			}
			if _, err := daemon.Start(t.Context(), cfg, tc.command, slog.New(slog.DiscardHandler)); !tc.is(err) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

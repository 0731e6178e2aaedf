package containerd_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// lazyBed is a runtime with an image of 24 MB whose layers the registry does not send as a whole.
type lazyBed struct {
	env      containerdtest.Env
	dir      string
	registry *runtimetest.Throttle
	image    string
	digest   string
	total    int64
	count    int
}

func newLazyBed(t *testing.T) *lazyBed {
	t.Helper()
	b := &lazyBed{env: containerdtest.Start(t), dir: containerdtest.Dir(t)}
	t.Cleanup(func() { b.removeAll(t) })
	behind := runtimetest.NewRegistry(t)
	b.registry = runtimetest.NewThrottle(t, behind)
	b.image, b.digest, b.total = behind.PushLazy(t, "test/lazy", b.env.Prog, 48, 500_000)
	b.image = strings.Replace(b.image, behind.Host, b.registry.Host, 1)
	return b
}

// removeAll removes the containers that a failed test has left.
func (b *lazyBed) removeAll(t *testing.T) {
	r := b.open(t)
	list, err := r.Containers(context.Background())
	if err != nil {
		t.Error(err)
	}
	for _, c := range list {
		remove(t, c)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	containerdtest.RemoveCgroup("/berth-test")
}

func (b *lazyBed) open(t *testing.T) *containerd.Runtime {
	t.Helper()
	r, err := containerd.New(context.Background(), containerd.Config{
		Socket: b.env.Socket, Agent: "lazy", Dir: b.dir, Shim: b.env.Shim, Runner: b.env.Runner, Runc: b.env.Runc,
		Lazy:   containerd.Lazy{Command: containerdtest.LazyCommand(t), Minimum: 1, Timeout: time.Second},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func (b *lazyBed) pull(t *testing.T, r *containerd.Runtime) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	img, err := r.Pull(ctx, runtime.PullRequest{Reference: b.image, Digest: b.digest, PlainHTTP: true, Lazy: true}, func(runtime.Progress) {})
	if err != nil || img.Digest != b.digest {
		t.Fatalf("image is %+v (%v)", img, err)
	}
}

func (b *lazyBed) spec(t *testing.T, args ...string) runtime.Spec {
	b.count++
	id := fmt.Sprintf("lazy-%d", b.count)
	return runtime.Spec{
		ID: id, Image: b.image, Hostname: id, Cwd: "/", Args: append([]string{"/bin/prog"}, args...),
		Env: []string{"PATH=/bin"}, CgroupPath: "/berth-test/" + id, Labels: map[string]string{runtime.LabelKernel: id},
		Log: runner.LogSpec{Dir: filepath.Join(t.TempDir(), "log"), FileBytes: 1 << 20, Files: 2},
	}
}

func (b *lazyBed) start(t *testing.T, r *containerd.Runtime, spec runtime.Spec) runtime.Container {
	t.Helper()
	c, err := r.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func remove(t *testing.T, c runtime.Container) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Remove(ctx); err != nil {
		t.Error(err)
	}
}

func run(t *testing.T, c runtime.Container, verb ...string) (string, int) {
	t.Helper()
	var out, errOut bytes.Buffer
	p, err := c.Exec(t.Context(), runtime.ExecSpec{Command: append([]string{"/bin/prog"}, verb...), Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out.String() + errOut.String(), code
}

// only returns the image that is present, or nil.
func (b *lazyBed) only(t *testing.T, r *containerd.Runtime) *runtime.Image {
	t.Helper()
	list, err := r.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, img := range list {
		if img.Reference == b.image {
			return &img
		}
	}
	return nil
}

func (b *lazyBed) served(t *testing.T) bool {
	for _, at := range containerdtest.MountsBelow(t, b.dir) {
		if strings.HasSuffix(at, "/root") {
			return true
		}
	}
	return false
}

// TestLazyStart runs containers of an image whose layers are not there, through the death of containerd
// and a restart of the agent, until the image is complete and its registry is gone.
func TestLazyStart(t *testing.T) {
	b := newLazyBed(t)
	r := b.open(t)
	b.pull(t, r)
	spec := b.spec(t, "sleep", "600")
	spec.User = "worker"
	c := b.start(t, r, spec)
	if out, code := run(t, c, "id"); code != 0 || out != "1000 1000\n" {
		t.Errorf("user of the image is %q (exit code %d)", out, code)
	}
	if out, code := run(t, c, "cat", "/data/7"); code != 0 || len(out) != 500_000 {
		t.Errorf("a file has %d bytes (exit code %d)", len(out), code)
	}
	if sent := b.registry.Sent.Load(); sent > b.total/3 {
		t.Errorf("the registry sent %d of %d bytes", sent, b.total)
	}
	wait.Until(t, "the state is known", func() bool {
		img := b.only(t, r)
		return img != nil && img.Lazy != nil && img.Lazy.Total == b.total && img.Lazy.Local > 500_000 && img.Lazy.Local < b.total
	})

	if err := syscall.Kill(b.env.Daemon.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "containerd is back", func() bool { return r.Answers(t.Context()) == nil })
	if out, code := run(t, c, "cat", "/data/8"); code != 0 || len(out) != 500_000 {
		t.Errorf("without containerd: a file has %d bytes (exit code %d)", len(out), code)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = b.open(t)
	found, err := r.Containers(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("containers: %v (%v)", found, err)
	}
	if out, code := run(t, found[0], "cat", "/data/9"); code != 0 || len(out) != 500_000 {
		t.Errorf("after a restart of the agent: a file has %d bytes (exit code %d)", len(out), code)
	}
	second := b.start(t, r, b.spec(t, "sleep", "600"))

	b.registry.Open()
	wait.Until(t, "the image is complete", func() bool { img := b.only(t, r); return img != nil && img.Lazy == nil })
	if got, err := second.Commit(t.Context(), runtime.CommitSpec{Repository: b.registry.Host + "/test/commit", PlainHTTP: true}, func(runtime.Progress) {}); err != nil || got.LayerBytes != 0 {
		t.Errorf("commit: %+v (%v)", got, err)
	}
	b.registry.Down.Store(true)
	for _, c := range []runtime.Container{found[0], second, b.start(t, r, b.spec(t, "sleep", "600"))} {
		for i := range 48 {
			if out, code := run(t, c, "cat", fmt.Sprintf("/data/%d", i)); code != 0 || len(out) != 500_000 {
				t.Fatalf("without the registry: file %d has %d bytes (exit code %d)", i, len(out), code)
			}
		}
		if !b.served(t) {
			t.Error("the mount is gone while a container uses it")
		}
	}
	remove(t, found[0])
	remove(t, second)
	wait.Until(t, "the mount is removed", func() bool { return !b.served(t) })
}

// TestLazyRegistryIsGone reads without the registry: the reason is reported, and reads fail.
func TestLazyRegistryIsGone(t *testing.T) {
	b := newLazyBed(t)
	r := b.open(t)
	b.pull(t, r)
	c := b.start(t, r, b.spec(t, "sleep", "600"))
	if _, code := run(t, c, "cat", "/bin/prog"); code != 0 { // all pages of the program, which runs again below
		t.Fatal("the program cannot be read")
	}
	b.registry.Down.Store(true)
	if out, code := run(t, c, "cat", "/data/30"); code == 0 || !strings.Contains(out, "input/output error") {
		t.Errorf("reading without the registry: %.200q, exit code %d", out, code)
	}
	wait.Until(t, "the reason is reported", func() bool {
		img := b.only(t, r)
		return img != nil && img.Lazy != nil && strings.Contains(img.Lazy.Failing, b.registry.Host)
	})
	if why, lost := c.(runtime.RootChecker).RootProblem(t.Context()); lost || !strings.Contains(why, "503") {
		t.Errorf("reason is %q, lost: %v", why, lost)
	}
	b.registry.Down.Store(false)
	wait.Until(t, "the file can be read", func() bool { _, code := run(t, c, "cat", "/data/30"); return code == 0 })
}

// TestLazyProcessIsKilled kills the process with the files of a running container.
func TestLazyProcessIsKilled(t *testing.T) {
	b := newLazyBed(t)
	r := b.open(t)
	for _, alive := range []bool{true, false} {
		b.pull(t, r)
		c := b.start(t, r, b.spec(t, "sleep", "600"))
		if !alive { // the agent is not running
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		b.killProcess(t)
		if !alive {
			r = b.open(t)
			list, err := r.Containers(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("containers: %v (%v)", list, err)
			}
			c = list[0]
		}
		exit, err := c.Wait(t.Context())
		if err != nil || exit.Code == 0 { // by our signal, or by a page of its program that cannot be read
			t.Errorf("the container ended with %+v (%v)", exit, err)
		}
		if why, lost := c.(runtime.RootChecker).RootProblem(t.Context()); !lost || !strings.Contains(why, "files are gone") {
			t.Errorf("reason is %q, lost: %v", why, lost)
		}
		remove(t, c)
		wait.Until(t, "the image is no longer listed", func() bool { return b.only(t, r) == nil && !b.served(t) })
		if _, err := r.Create(t.Context(), b.spec(t, "sleep", "1")); !errdefs.IsNotFound(err) {
			t.Errorf("creating without the image: %v", err)
		}
	}
}

func (b *lazyBed) killProcess(t *testing.T) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		var pid int
		if at, err := os.Readlink(p); err != nil || !strings.HasPrefix(at, filepath.Join(b.dir, "lazy")) {
			continue
		}
		if _, err := fmt.Sscanf(p, "/proc/%d/cwd", &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no process serves the image")
}

// TestOtherFormatIsPulledWhole pulls an image without an index.
func TestOtherFormatIsPulledWhole(t *testing.T) {
	b := newLazyBed(t)
	r := b.open(t)
	b.image, b.digest = runtimetest.NewRegistry(t).Push(t, "test/prog", b.env.Prog, v1.Config{})
	b.pull(t, r)
	if img := b.only(t, r); img == nil || img.Lazy != nil || !strings.Contains(img.Whole, "not in a format with an index") {
		t.Errorf("image is %+v", img)
	}
	if b.served(t) {
		t.Error("it is mounted")
	}
}

// TestLazyImageIsRemoved removes an image that is not complete, and closes without one.
func TestLazyImageIsRemoved(t *testing.T) {
	b := newLazyBed(t)
	r := b.open(t)
	b.pull(t, r)
	c := b.start(t, r, b.spec(t, "sleep", "600"))
	if err := r.RemoveImage(t.Context(), *b.only(t, r)); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("removing an image in use: %v", err)
	}
	remove(t, c)
	if err := r.RemoveImage(t.Context(), *b.only(t, r)); err != nil {
		t.Error(err)
	}
	if b.served(t) || b.only(t, r) != nil {
		t.Error("it is still there")
	}
	b.pull(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if b.served(t) {
		t.Error("a mount without a container is left by an agent that has ended")
	}
}

// TestIndexedCommit commits a container to an image that starts before it is complete.
func TestIndexedCommit(t *testing.T) {
	b := newLazyBed(t)
	r := b.open(t)
	b.registry.Open()
	b.pull(t, r)
	c := b.start(t, r, b.spec(t, "sleep", "600"))
	if out, code := run(t, c, "write", "/etc/note", "changed"); code != 0 {
		t.Fatalf("write: %s (exit code %d)", out, code)
	}
	to := runtime.CommitSpec{Repository: b.registry.Host + "/test/commit", PlainHTTP: true, Indexed: true}
	first, err := c.Commit(t.Context(), to, func(runtime.Progress) {})
	if err != nil || first.LayerBytes == 0 {
		t.Fatalf("commit: %+v (%v)", first, err)
	}
	if again, err := c.Commit(t.Context(), to, func(runtime.Progress) {}); err != nil || again.Digest != first.Digest || again.Sent != 0 {
		t.Errorf("the second commit without changes is %+v (%v), the first was %+v", again, err, first)
	}
	remove(t, c)
	b.image, b.digest = to.Repository+"@"+first.Digest, first.Digest
	b.pull(t, r)
	if img := b.only(t, r); img == nil || img.Lazy == nil {
		t.Errorf("image is %+v", img)
	}
	c = b.start(t, r, b.spec(t, "sleep", "600"))
	if out, code := run(t, c, "cat", "/etc/note"); out != "changed" || code != 0 {
		t.Errorf("the file is %q (exit code %d)", out, code)
	}
	wait.Until(t, "the image is complete", func() bool { img := b.only(t, r); return img != nil && img.Lazy == nil })
	whole := b.start(t, r, b.spec(t, "sleep", "600"))
	if out, code := run(t, whole, "cat", "/etc/note"); out != "changed" || code != 0 {
		t.Errorf("unpacked by containerd, the file is %q (exit code %d)", out, code)
	}
	remove(t, c)
	remove(t, whole)
}

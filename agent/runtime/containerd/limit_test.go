package containerd_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
	"github.com/berthhq/berth/internal/simulator/image/imagetest"
)

// idle starts a waiting container with folder mounted at /folder, and returns a function that runs
// prog in it.
func idle(t testing.TB, env containerdtest.Env, folder string) func(args ...string) string {
	t.Helper()
	r := open(t, env, containerdtest.Dir(t))
	ref, digest := runtimetest.NewRegistry(t).Push(t, "test/prog", env.Prog, v1.Config{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	t.Cleanup(cancel)
	if _, err := r.Pull(ctx, runtime.PullRequest{Reference: ref, Digest: digest, PlainHTTP: true}, func(runtime.Progress) {}); err != nil {
		t.Fatal(err)
	}
	c, err := r.Create(ctx, runtime.Spec{
		ID: "idle", Image: ref, Hostname: "idle", Cwd: "/", Args: []string{"/bin/prog", "sleep", "600"},
		CgroupPath: "/berth-test/idle", Labels: map[string]string{runtime.LabelKernel: "idle"},
		Resources: runtime.Resources{Memory: 64 << 20, Pids: 64},
		Log:       runner.LogSpec{Dir: filepath.Join(t.TempDir(), "log"), FileBytes: 1 << 20, Files: 2},
		Mounts:    []specs.Mount{{Destination: "/folder", Type: "bind", Source: folder, Options: []string{"rbind", "rprivate", "nosuid", "nodev"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(ctx); err != nil {
			t.Error(err)
		}
		containerdtest.RemoveCgroup("/berth-test")
	})
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) string {
		t.Helper()
		var out, complaint bytes.Buffer
		p, err := c.Exec(ctx, runtime.ExecSpec{Command: append([]string{"/bin/prog"}, args...), Stdout: &out, Stderr: &complaint})
		if err != nil {
			t.Fatal(err)
		}
		if code, err := p.Wait(ctx); code != 0 || err != nil {
			t.Errorf("%v: exit %d, %v: %s", args, code, err, &complaint)
		}
		return strings.TrimSpace(out.String())
	}
}

// TestLimitsHoldInContainers runs as the owner of a folder and as root in a container, and tries to
// leave the quota of the folder.
func TestLimitsHoldInContainers(t *testing.T) {
	mount, _ := imagetest.New(t)
	env := containerdtest.Start(t)
	prog := idle(t, env, mount)

	for name, args := range map[string][]string{
		"subvolume": {"5000940e", "", "sub"},
		"project":   {"401c5820", ""},
		"flags":     {"40086602", ""},
	} {
		on := func(folder string) []string {
			return append([]string{"ioctl", args[0], folder}, args[2:]...)
		}
		if got := prog(on("/folder")...); got != "operation not permitted" {
			t.Errorf("%s: %s", name, got)
		}
		if out, err := exec.Command(env.Prog, on(mount)...).CombinedOutput(); err != nil || string(out) != "done\n" {
			t.Errorf("%s outside of a container, where nothing is filtered: %s %v", name, out, err)
		}
	}

	prog("write", "/folder/from", "blocks to share")
	for _, tried := range []struct{ want, got string }{
		{"done", prog("clone", "/folder/from", "/folder/to")},
		{"blocks to share", prog("cat", "/folder/to")},
		{"done", prog("ioctl", "80086601", "/folder")},                         // FS_IOC_GETFLAGS
		{"done", prog("ioctl", "541b", "/folder/from")},                        // FIONREAD
		{"inappropriate ioctl for device", prog("ioctl", "5413", "/dev/null")}, // TIOCGWINSZ
	} {
		if tried.got != tried.want {
			t.Errorf("got %q, want %q", tried.got, tried.want)
		}
	}
	wholeFilter(t, prog("refused"))
}

// wholeFilter checks, for every command, the seccomp filter that the kernel built from the profile.
func wholeFilter(t *testing.T, got string) {
	var want strings.Builder
	for _, one := range []int{0x5820, 0x6602, 0x66fd} {
		fmt.Fprintf(&want, "%04x 4\n", one)
	}
	for n := range 256 {
		fmt.Fprintf(&want, "94%02x 4\n", n)
	}
	if got != strings.TrimSpace(want.String()) {
		t.Errorf("refused are:\n%s", got)
	}
}

func BenchmarkIoctlInContainer(b *testing.B) {
	prog := idle(b, containerdtest.Start(b), b.TempDir())
	for b.Loop() {
		for line := range strings.Lines(prog("pace")) {
			var name string
			var ns float64
			if _, err := fmt.Sscan(line, &name, &ns); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(ns, "ns/"+name)
		}
	}
}

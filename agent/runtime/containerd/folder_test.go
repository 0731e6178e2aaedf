package containerd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// A process that keeps renaming the parent directories of a folder cannot keep the folder mounted.
func TestRemountOfWhatIsMovedAbout(t *testing.T) {
	env := containerdtest.Start(t)
	r := open(t, env, containerdtest.Dir(t))
	image, digest := runtimetest.NewRegistry(t).Push(t, "test/prog", env.Prog, v1.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.Pull(ctx, runtime.PullRequest{Reference: image, Digest: digest, PlainHTTP: true}, func(runtime.Progress) {}); err != nil {
		t.Fatal(err)
	}
	source := t.TempDir()
	c, err := r.Create(ctx, runtime.Spec{
		ID: "juggler", Image: image, Hostname: "juggler", Cwd: "/", Args: []string{"/bin/prog", "juggle", "/at"},
		CgroupPath: "/berth-test/juggler", Labels: map[string]string{runtime.LabelKernel: "juggler"},
		Resources: runtime.Resources{Memory: 64 << 20, Pids: 64},
		Log:       runner.LogSpec{Dir: filepath.Join(t.TempDir(), "log"), FileBytes: 1 << 20, Files: 2},
		Mounts:    []specs.Mount{{Destination: "/at0/data", Type: "bind", Source: source, Options: []string{"rbind", "rprivate"}}},
		Folders:   []string{"/at0/data"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Remove(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
		containerdtest.RemoveCgroup("/berth-test")
	}()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	state, err := c.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	where := func() (lines []string) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", state.PID))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "/data ") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	for at := where(); ; {
		if now := where(); len(now) == 1 && now[0] != at[0] {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("nothing moves")
		}
	}
	for _, change := range []mount.Change{{Target: "/at0/data", ReadOnly: true}, {Target: "/at0/data", Gone: true}} {
		if err := c.Remount(ctx, []mount.Change{change}); err != nil {
			t.Fatalf("%+v: %v", change, err)
		}
		if at := where(); change.Gone && len(at) > 0 || !change.Gone && !strings.Contains(at[0], " ro,") {
			t.Errorf("after %+v: %v", change, at)
		}
		if state, err := c.State(ctx); err != nil || state.Phase != runtime.Running {
			t.Errorf("after %+v: %+v, %v", change, state, err)
		}
	}
}

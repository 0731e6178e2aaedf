package containerd_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// An agent that was killed during a commit may have left the container paused.
func TestPausedContainersAreResumed(t *testing.T) {
	env := containerdtest.Start(t)
	dir := containerdtest.Dir(t)
	image, _ := runtimetest.NewRegistry(t).Push(t, "test/prog", env.Prog, v1.Config{})
	r := open(t, env, dir)
	ctx := t.Context()
	if _, err := r.Pull(ctx, runtime.PullRequest{Reference: image, PlainHTTP: true}, func(runtime.Progress) {}); err != nil {
		t.Fatal(err)
	}
	c, err := r.Create(ctx, runtime.Spec{
		ID: "paused", Image: image, Cwd: "/", Args: []string{"/bin/prog", "sleep", "600"}, CgroupPath: "/berth-test-paused/1",
		Log: runner.LogSpec{Dir: filepath.Join(t.TempDir(), "log"), FileBytes: 1 << 20, Files: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer containerdtest.RemoveCgroup("/berth-test-paused")
	defer func() {
		if err := c.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(env.Socket, client.WithDefaultNamespace("berth"))
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	named := namespaces.WithNamespace(ctx, "berth")
	loaded, err := direct.LoadContainer(named, "paused")
	if err != nil {
		t.Fatal(err)
	}
	task, err := loaded.Task(named, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Pause(named); err != nil {
		t.Fatal(err)
	}
	open(t, env, dir)
	if s, err := task.Status(named); err != nil || s.Status != client.Running {
		t.Fatalf("after a restart the container is %v, %v", s.Status, err)
	}
	var out, errOut bytes.Buffer
	p, err := c.Exec(ctx, runtime.ExecSpec{Command: []string{"/bin/prog", "exit", "3"}, Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(ctx); code != 3 || err != nil {
		t.Errorf("a command: exit code %d, %v", code, err)
	}
}

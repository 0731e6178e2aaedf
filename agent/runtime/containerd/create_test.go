package containerd_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// bench is a runtime with an image, and a client of its containerd.
type bench struct {
	env   containerdtest.Env
	dir   string
	run   runtime.Runtime
	image string
	raw   *client.Client
}

func newBench(t *testing.T) *bench {
	env := containerdtest.Start(t)
	b := &bench{env: env, dir: containerdtest.Dir(t)}
	b.run = open(t, env, b.dir)
	image, digest := runtimetest.NewRegistry(t).Push(t, "test/prog", env.Prog, v1.Config{})
	b.image = image
	request := runtime.PullRequest{Reference: image, Digest: digest, PlainHTTP: true}
	if _, err := b.run.Pull(t.Context(), request, func(runtime.Progress) {}); err != nil {
		t.Fatal(err)
	}
	raw, err := client.New(env.Socket, client.WithDefaultNamespace("berth"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	b.raw = raw
	return b
}

func (b *bench) create(t *testing.T, id string) {
	t.Helper()
	c, err := b.run.Create(t.Context(), runtime.Spec{
		ID: id, Image: b.image, Hostname: id, Cwd: "/", Args: []string{"/bin/prog", "sleep", "600"},
		CgroupPath: "/berth-test/" + id, Labels: map[string]string{runtime.LabelKernel: id},
		Log: runner.LogSpec{Dir: filepath.Join(t.TempDir(), "log"), FileBytes: 1 << 20, Files: 2},
	})
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Remove(ctx); err != nil {
			t.Error(err)
		}
		if b.exists(t, ctx, id) {
			t.Errorf("snapshot %s is left", id)
		}
		containerdtest.RemoveCgroup("/berth-test")
	})
}

func (b *bench) exists(t *testing.T, ctx context.Context, snapshot string) bool {
	t.Helper()
	_, err := b.raw.SnapshotService("overlayfs").Stat(ctx, snapshot)
	if err != nil && !errdefs.IsNotFound(err) {
		t.Error(err)
	}
	return err == nil
}

// leave creates the snapshot that remains if an agent is killed before it writes the container's
// record.
func (b *bench) leave(t *testing.T, agent, id string) {
	t.Helper()
	image, err := b.raw.GetImage(t.Context(), b.image)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.RootFS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.raw.SnapshotService("overlayfs").Prepare(t.Context(), id, layers[0].String(), snapshots.WithLabels(map[string]string{
		runtime.LabelAgent: agent, "containerd.io/gc.root": time.Now().UTC().Format(time.RFC3339),
	}))
	if err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotOfKilledAgent(t *testing.T) {
	b := newBench(t)
	b.leave(t, "suite", "again")
	b.create(t, "again")

	b.leave(t, "suite", "never")
	b.leave(t, "other", "foreign")
	open(t, b.env, b.dir)
	for id, want := range map[string]bool{"again": true, "never": false, "foreign": true} {
		if got := b.exists(t, t.Context(), id); got != want {
			t.Errorf("snapshot %s after a restart of the agent: %v, want %v", id, got, want)
		}
	}
}

// TestCreateDuringCollection makes containerd collect garbage all the time. The snapshot of a
// container must not be collected before the container's record refers to it.
func TestCreateDuringCollection(t *testing.T) {
	b := newBench(t)
	ctx, stop := context.WithCancel(t.Context())
	var collecting sync.WaitGroup
	collecting.Go(func() {
		for ctx.Err() == nil {
			lease, err := b.raw.LeasesService().Create(ctx, leases.WithRandomID())
			if err == nil {
				err = b.raw.LeasesService().Delete(context.WithoutCancel(ctx), lease, leases.SynchronousDelete)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for i := range 8 {
		b.create(t, fmt.Sprint("collected-", i))
	}
	stop()
	collecting.Wait()
}

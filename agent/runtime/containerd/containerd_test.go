package containerd_test

import (
	"context"
	"io"
	"log/slog"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

func TestMain(m *testing.M) { containerdtest.Main(m) }

func open(t testing.TB, env containerdtest.Env, dir string) *containerd.Runtime {
	t.Helper()
	r, err := containerd.New(context.Background(), containerd.Config{
		Socket: env.Socket, Agent: "suite", Dir: dir, Shim: env.Shim, Runner: env.Runner,
		Runc:   env.Runc,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestSuite(t *testing.T) {
	env := containerdtest.Start(t)
	dir := containerdtest.Dir(t)
	registry := runtimetest.NewRegistry(t)
	image, digest := registry.Push(t, "test/prog", env.Prog, v1.Config{})
	runtimetest.Run(t, runtimetest.Subject{
		Runtime: open(t, env, dir), Image: image, Digest: digest, Repository: registry.Host + "/suite/commit",
		Again: func(t *testing.T) runtime.Runtime { return open(t, env, dir) },
	})
	if left := containerdtest.Cgroups(t, "/berth-test"); len(left) > 0 {
		t.Errorf("cgroups left: %v", left)
	}
	containerdtest.RemoveCgroup("/berth-test")
}

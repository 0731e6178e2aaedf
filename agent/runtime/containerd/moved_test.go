package containerd_test

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// TestPullAfterTheTagMoved fetches the content that a tag had before, and then the one that it has.
func TestPullAfterTheTagMoved(t *testing.T) {
	env := containerdtest.Start(t)
	run := open(t, env, containerdtest.Dir(t))
	registry := runtimetest.NewRegistry(t)
	image, old := registry.Push(t, "test/moves", env.Prog, v1.Config{Env: []string{"V=1"}})
	again, now := registry.Push(t, "test/moves", env.Prog, v1.Config{Env: []string{"V=2"}})
	if image != again || old == now {
		t.Fatalf("pushed %s %s and %s %s", image, old, again, now)
	}
	for _, digest := range []string{old, now, old} {
		got, err := run.Pull(t.Context(), runtime.PullRequest{Reference: image, Digest: digest, PlainHTTP: true}, func(runtime.Progress) {})
		if err != nil || got.Digest != digest || got.Reference != image {
			t.Errorf("pulled %+v, %v; want %s", got, err, digest)
		}
	}
}

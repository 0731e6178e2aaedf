package fake

import (
	"testing"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

func TestSuite(t *testing.T) {
	img := runtime.Image{Reference: "registry.test/prog:latest", Digest: "sha256:1"}
	host := NewHost(img)
	runtimetest.Run(t, runtimetest.Subject{
		Runtime: New(host, "suite"), Image: img.Reference, Digest: img.Digest, Repository: runtimetest.NewRegistry(t).Host + "/suite/commit",
		Again: func(*testing.T) runtime.Runtime { return New(host, "suite") },
	})
}

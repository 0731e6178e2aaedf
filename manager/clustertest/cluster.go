// Package clustertest runs a manager with agents and storage proxies for tests. Only tests
// import it.
package clustertest

import (
	"log/slog"
	goruntime "runtime"
	"testing"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/managertest"
)

// ImageReference is the reference of the image that every machine has.
const ImageReference = "registry.test/prog:latest"

// Cluster is a world with one manager, and machines whose agents run no real containers.
type Cluster struct {
	*managertest.World
	Manager *managertest.Manager
	Member  *managertest.Client // a member of project A
	Image   *ent.Image
	Nodes   []*Node
	Log     *slog.Logger // of the agents; nil: warnings are shown
}

// New starts a cluster with a number of machines. The test becomes parallel: its stores are its own.
func New(t *testing.T, nodes int) *Cluster {
	t.Helper()
	return NewWith(t, nodes, func(w *managertest.World) *managertest.Manager { return w.Start(t) })
}

// NewWith is New with a function that starts the manager.
func NewWith(t *testing.T, nodes int, start func(*managertest.World) *managertest.Manager) *Cluster {
	t.Helper()
	t.Parallel() // it has its own stores, and mostly waits
	c := &Cluster{World: managertest.New(t)}
	ctx := c.System(t)
	reg := c.Client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(ctx)
	c.Image = c.Client.Image.Create().SetReference(ImageReference).SetName("prog:latest").SetArchitecture(goruntime.GOARCH).
		SetDigest("sha256:1").SetRegistry(reg).SaveX(ctx)
	c.Client.Image.Create().SetReference("registry.test/gone:latest").SetName("gone:latest").SetArchitecture(goruntime.GOARCH).
		SetDigest("sha256:2").SetRegistry(reg).SaveX(ctx)
	c.Manager = start(c.World)
	c.Member = c.Manager.As(t, c.A.Member)
	c.Grow(t, nodes)
	return c
}

// PulledImage is the image that every machine has.
func PulledImage() runtime.Image { return runtime.Image{Reference: ImageReference, Digest: "sha256:1"} }

package agent_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
)

// BenchmarkStart alternates three measurements on one containerd: a kernel from request to RUNNING
// as seen by a manager, create and start of the same image by a plain client, and runc alone on an
// unpacked copy. The plain container has no seccomp filter, limits, folders, address or log, so the
// ratio shows the cost of all of these together.
func BenchmarkStart(b *testing.B) {
	n := newNode(b, v1.Config{Entrypoint: []string{"/bin/prog"}})
	n.run(b)
	n.pull(b)
	bare := n.bareClient(b)
	bundle := n.bundle(b)
	n.startKernel(b) // excludes one-time work from the measurement
	var kernels, containers, runc []time.Duration
	for b.Loop() {
		kernels = append(kernels, n.startKernel(b))
		containers = append(containers, n.startBare(b, bare))
		runc = append(runc, n.startRunc(b, bundle))
	}
	agentMS, bareMS, runcMS := median(kernels), median(containers), median(runc)
	b.ReportMetric(agentMS, "kernel-ms")
	b.ReportMetric(bareMS, "containerd-ms")
	b.ReportMetric(runcMS, "runc-ms")
	b.ReportMetric(agentMS/bareMS, "x-containerd")
	b.ReportMetric(agentMS/runcMS, "x-runc")
	b.ReportMetric(0, "ns/op") // the sum of the three measurements has no meaning
}

func median(list []time.Duration) float64 {
	slices.Sort(list)
	return float64(list[len(list)/2].Microseconds()) / 1000
}

func (n *node) startKernel(b *testing.B) time.Duration {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	watch, err := n.Watch(ctx, &agentpb.WatchRequest{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		b.Fatal(err)
	}
	r := n.request("sleep", "600")
	r.Command = []string{"sleep", "600"} // after the entry point
	began := time.Now()
	n.create(b, r)
	for {
		e, err := watch.Recv()
		if err != nil {
			b.Fatal(err)
		}
		if k := e.GetKernel(); k.GetKernelId() == r.KernelId && k.Phase == agentpb.KernelState_RUNNING {
			break
		}
	}
	took := time.Since(began)
	n.end(b, r.KernelId, time.Second)
	if _, err := n.ForgetKernel(b.Context(), &agentpb.ForgetKernelRequest{Epoch: n.epoch, KernelId: r.KernelId}); err != nil {
		b.Fatal(err)
	}
	return took
}

func (n *node) bareClient(b *testing.B) *client.Client {
	c, err := client.New(n.env.Socket, client.WithDefaultNamespace("berth"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

func (n *node) startBare(b *testing.B, c *client.Client) time.Duration {
	ctx := namespaces.WithNamespace(b.Context(), "berth")
	image, err := c.GetImage(ctx, n.image)
	if err != nil {
		b.Fatal(err)
	}
	id := "bare-" + uuid.NewString()
	began := time.Now()
	container, err := c.NewContainer(ctx, id,
		client.WithNewSnapshot(id, image), client.WithRuntime(n.env.Shim, n.runcOptions()),
		client.WithNewSpec(oci.WithImageConfigArgs(image, []string{"sleep", "600"})))
	if err != nil {
		b.Fatal(err)
	}
	task, err := container.NewTask(ctx, cio.NullIO)
	if err != nil {
		b.Fatal(err)
	}
	if err := task.Start(ctx); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if _, err := task.Delete(ctx, client.WithProcessKill); err != nil {
		b.Fatal(err)
	}
	if err := container.Delete(ctx, client.WithSnapshotCleanup); err != nil {
		b.Fatal(err)
	}
	return took
}

// bundle unpacks the image for runc.
func (n *node) bundle(b *testing.B) string {
	dir := b.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "rootfs/bin"), 0o755); err != nil {
		b.Fatal(err)
	}
	program, err := os.ReadFile(n.env.Prog)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rootfs/bin/prog"), program, 0o755); err != nil {
		b.Fatal(err)
	}
	spec := exec.Command("sh", "-c", fmt.Sprintf(`%s spec && sed -i 's/"terminal": true/"terminal": false/; s|"sh"|"/bin/prog", "sleep", "600"|' config.json`, n.env.Runc))
	spec.Dir = dir
	if out, err := spec.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return dir
}

func (n *node) startRunc(b *testing.B, bundle string) time.Duration {
	id := "runc-" + uuid.NewString()
	root := filepath.Join(bundle, "state")
	run := exec.Command(n.env.Runc, "--root", root, "run", "-d", "-b", bundle, id)
	began := time.Now()
	if err := run.Run(); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if out, err := exec.Command(n.env.Runc, "--root", root, "delete", "-f", id).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return took
}

func (n *node) runcOptions() *options.Options {
	return &options.Options{BinaryName: n.env.Runc, Root: filepath.Join(n.dir, "bare")}
}

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/containerd/containerd/api/types/runc/options"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

var platform *cluster.Platform

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, cluster.Options{Accelerators: 1}, &platform)) }

// BenchmarkSessionStart measures three times alternately: from createSession until a subscriber
// gets RUNNING; create and start by a bare client of the same containerd; and runc run of the same
// image.
func BenchmarkSessionStart(b *testing.B) {
	u := platform.User(b)
	running := follow(b, u)
	first := start(b, u, running) // this start pulls the image
	bare := newBare(b, first.image)
	var api, engine, runc []time.Duration
	for b.Loop() {
		api = append(api, start(b, u, running).took)
		engine = append(engine, bare.start(b))
		runc = append(runc, bare.run(b))
	}
	b.ReportMetric(0, "ns/op") // the sum of the three is meaningless
	b.ReportMetric(ms(api), "api-ms")
	b.ReportMetric(ms(engine), "containerd-ms")
	b.ReportMetric(ms(runc), "runc-ms")
	b.ReportMetric(ms(api)/ms(engine), "x-containerd")
	b.ReportMetric(ms(api)/ms(runc), "x-runc")
}

// ms returns the median in milliseconds.
func ms(list []time.Duration) float64 {
	slices.Sort(list)
	return float64(list[len(list)/2].Microseconds()) / 1000
}

// follow sends the id of each session of the user when it runs.
func follow(b *testing.B, u *cluster.User) <-chan string {
	ids := make(chan string, 16)
	ready := make(chan struct{})
	go func() {
		close(ready)
		_ = u.Subscribe(b.Context(), client.Request{Query: `subscription { sessionChanged { id status } }`},
			func(raw json.RawMessage) error {
				var m struct{ SessionChanged struct{ ID, Status string } }
				if err := json.Unmarshal(raw, &m); err != nil {
					return err
				}
				if m.SessionChanged.Status == "RUNNING" {
					ids <- m.SessionChanged.ID
				}
				return nil
			})
	}()
	<-ready
	return ids
}

type started struct {
	took  time.Duration
	image string
}

func start(b *testing.B, u *cluster.User, running <-chan string) started {
	began := time.Now()
	s := u.Run(cluster.Interactive())
	for {
		select {
		case id := <-running:
			if id != s.ID {
				continue
			}
		case <-time.After(cluster.Timeout):
			b.Fatalf("session %s did not start", s.ID)
		}
		break
	}
	out := started{took: time.Since(began)}
	detail, err := u.Session(b.Context(), s.ID)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("started in %s, event after %s", detail.StartedAt.Sub(detail.CreatedAt), out.took)
	out.image = detail.Image.Reference
	if _, err := u.TerminateSession(b.Context(), s.ID, true); err != nil {
		b.Fatal(err)
	}
	u.Until(s.ID, "TERMINATED")
	return out
}

// bare uses the platform's own containerd and runc without the platform.
type bare struct {
	client *containerd.Client
	image  containerd.Image
	bundle string
	root   string
}

func newBare(b *testing.B, ref string) *bare {
	address := daemon.Config{Dir: filepath.Join(platform.Data(), "containerd")}.Address()
	c, err := containerd.New(address, containerd.WithDefaultNamespace("berth"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	image, err := c.GetImage(b.Context(), ref)
	if err != nil {
		b.Fatal(err)
	}
	x := &bare{client: c, image: image, bundle: b.TempDir(), root: filepath.Join(platform.Data(), "bare")}
	x.unpack(b)
	return x
}

// unpack mounts the image below the bundle for runc.
func (x *bare) unpack(b *testing.B) {
	ctx := b.Context()
	diffs, err := x.image.RootFS(ctx)
	if err != nil {
		b.Fatal(err)
	}
	key := "bench-" + uuid.NewString()
	mounts, err := x.client.SnapshotService("").Prepare(ctx, key, diffs[len(diffs)-1].String())
	if err != nil {
		b.Fatal(err)
	}
	rootfs := filepath.Join(x.bundle, "rootfs")
	if err := os.Mkdir(rootfs, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := mount.All(mounts, rootfs); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = mount.UnmountAll(rootfs, 0)
		_ = x.client.SnapshotService("").Remove(context.Background(), key)
	})
	spec := fmt.Sprintf(`%s spec && sed -i 's/"terminal": true/"terminal": false/; s|"sh"|"sleep", "60"|' config.json`, platform.Bin("runc"))
	cmd := exec.Command("sh", "-c", spec)
	cmd.Dir = x.bundle
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("runc spec: %v: %s", err, out)
	}
}

// start creates a container with the limits, seccomp filter and namespaces of containerd's default
// spec.
func (x *bare) start(b *testing.B) time.Duration {
	ctx := b.Context()
	id := "bare-" + uuid.NewString()
	began := time.Now()
	c, err := x.client.NewContainer(ctx, id, containerd.WithNewSnapshot(id, x.image),
		containerd.WithRuntime(platform.Bin("containerd-shim-runc-v2"), &options.Options{BinaryName: platform.Bin("runc"), Root: x.root}),
		containerd.WithNewSpec(oci.WithImageConfigArgs(x.image, []string{"sleep", "60"})))
	if err != nil {
		b.Fatal(err)
	}
	task, err := c.NewTask(ctx, cio.NullIO)
	if err != nil {
		b.Fatal(err)
	}
	if err := task.Start(ctx); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if _, err := task.Delete(ctx, containerd.WithProcessKill); err != nil {
		b.Fatal(err)
	}
	if err := c.Delete(ctx, containerd.WithSnapshotCleanup); err != nil {
		b.Fatal(err)
	}
	return took
}

func (x *bare) run(b *testing.B) time.Duration {
	id := "runc-" + uuid.NewString()
	run := exec.Command(platform.Bin("runc"), "--root", x.root, "run", "-d", "-b", x.bundle, id)
	began := time.Now()
	if err := run.Run(); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if out, err := exec.Command(platform.Bin("runc"), "--root", x.root, "delete", "-f", id).CombinedOutput(); err != nil {
		b.Fatalf("runc delete: %v: %s", err, out)
	}
	return took
}

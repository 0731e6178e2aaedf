package containerd_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// BenchmarkFirstStart measures the time from the request to pull an image until a command in a container has
// read a twentieth of the files, lazily and after a whole pull, from the same registry in turns. The image has
// files of 1 MiB; BERTH_BENCH_LAZY_MIB sets their number, 300 without it.
func BenchmarkFirstStart(b *testing.B) {
	files, err := strconv.Atoi(os.Getenv("BERTH_BENCH_LAZY_MIB"))
	if err != nil || files < 20 {
		files = 300
	}
	env := containerdtest.Start(b)
	registry := runtimetest.NewRegistry(b)
	image, digest, total := registry.PushLazy(b, "bench/lazy", env.Prog, files, 1<<20)
	for _, limit := range []struct {
		name string
		rate int64
	}{{"loopback", 0}, {"100 MB per second", 100e6}, {"20 MB per second", 20e6}} {
		b.Run(limit.name, func(b *testing.B) {
			var took [2]float64
			var sent float64
			for range b.N {
				for i, lazily := range []bool{true, false} {
					proxy := runtimetest.NewThrottle(b, registry)
					proxy.Rate = limit.rate
					proxy.Open()
					start := firstStart{env: env, image: strings.Replace(image, registry.Host, proxy.Host, 1), digest: digest, files: files, lazy: lazily, registry: proxy}
					took[i] += start.run(b).Seconds()
					if lazily {
						sent += float64(start.sent)
					}
				}
			}
			n := float64(b.N)
			b.ReportMetric(took[0]/n*1000, "lazy-ms")
			b.ReportMetric(took[1]/n*1000, "whole-ms")
			b.ReportMetric(took[0]/took[1], "lazy/whole")
			b.ReportMetric(sent/n/float64(total), "lazy-sent/image")
			b.ReportMetric(0, "ns/op")
		})
	}
}

type firstStart struct {
	env           containerdtest.Env
	image, digest string
	files         int
	lazy          bool
	registry      *runtimetest.Throttle
	sent          int64 // bytes that the registry had sent when the command had its output
}

// run removes everything at its end, so that the next one finds nothing.
func (f *firstStart) run(b *testing.B) time.Duration {
	b.Helper()
	dir := containerdtest.Dir(b)
	r, err := containerd.New(context.Background(), containerd.Config{
		Socket: f.env.Socket, Agent: "bench", Dir: dir, Shim: f.env.Shim, Runner: f.env.Runner, Runc: f.env.Runc,
		Lazy:   containerd.Lazy{Command: containerdtest.LazyCommand(b)},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	begun := time.Now()
	if _, err := r.Pull(ctx, runtime.PullRequest{Reference: f.image, Digest: f.digest, PlainHTTP: true, Lazy: f.lazy}, func(runtime.Progress) {}); err != nil {
		b.Fatal(err)
	}
	c, err := r.Create(ctx, runtime.Spec{
		ID: "bench", Image: f.image, Hostname: "bench", Cwd: "/", Args: []string{"/bin/prog", "sleep", "600"}, Env: []string{"PATH=/bin"},
		CgroupPath: "/berth-test-bench/1", Log: runner.LogSpec{Dir: dir + "/log", FileBytes: 1 << 20, Files: 2},
	})
	if err == nil {
		err = c.Start(ctx)
	}
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < f.files; i += 20 {
		var n written
		p, err := c.Exec(ctx, runtime.ExecSpec{Command: []string{"/bin/prog", "cat", fmt.Sprintf("/data/%d", i)}, Stdout: &n, Stderr: io.Discard})
		if err != nil {
			b.Fatal(err)
		}
		if code, err := p.Wait(ctx); err != nil || code != 0 || n != 1<<20 {
			b.Fatalf("file %d has %d bytes (exit code %d, %v)", i, n, code, err)
		}
	}
	took := time.Since(begun)
	f.sent = f.registry.Sent.Load()
	if err := c.Remove(ctx); err != nil {
		b.Fatal(err)
	}
	list, err := r.Images(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for _, img := range list {
		if err := r.RemoveImage(ctx, img); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	containerdtest.RemoveCgroup("/berth-test-bench")
	return took
}

type written int64

func (w *written) Write(p []byte) (int, error) {
	*w += written(len(p))
	return len(p), nil
}

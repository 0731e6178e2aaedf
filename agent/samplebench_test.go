package agent_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/cgroup"
)

// BenchmarkIdleSample samples idle kernels by reading their cgroups, as the agent does, and by
// calling their shims, as it did before. It reports the processor time that one sample costs this
// process, containerd and the shims together.
func BenchmarkIdleSample(b *testing.B) {
	n := newNode(b, v1.Config{Entrypoint: []string{"/bin/prog"}})
	n.run(b)
	n.pull(b)
	const kernels = 10
	id, err := os.ReadFile(filepath.Join(n.dir, "id"))
	if err != nil {
		b.Fatal(err)
	}
	var ids, paths []string
	for range kernels {
		r := n.request()
		r.Allocations[0].Amount = "0.02"
		s := n.start(b, r)
		ids = append(ids, s.ContainerId)
		paths = append(paths, "/berth/"+strings.TrimSpace(string(id))+"/"+s.KernelId)
	}
	b.Run("files", func(b *testing.B) {
		before := n.processorTime(b)
		for b.Loop() {
			for _, path := range paths {
				g, err := cgroup.Find(cgroup.Root, path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := g.Stats(); err != nil {
					b.Fatal(err)
				}
			}
		}
		n.reportSamples(b, before, b.N*kernels)
	})
	b.Run("shim", func(b *testing.B) {
		c := n.bareClient(b)
		ctx := namespaces.WithNamespace(context.Background(), "berth")
		before := n.processorTime(b)
		for b.Loop() {
			for _, id := range ids {
				container, err := c.LoadContainer(ctx, id)
				if err != nil {
					b.Fatal(err)
				}
				task, err := container.Task(ctx, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := task.Metrics(ctx); err != nil {
					b.Fatal(err)
				}
			}
		}
		n.reportSamples(b, before, b.N*kernels)
	})
	for _, k := range n.report(b).Kernels {
		if k.Phase == agentpb.KernelState_RUNNING {
			n.end(b, k.KernelId, 1)
		}
	}
}

func (n *node) reportSamples(b *testing.B, before int64, samples int) {
	b.ReportMetric(float64(n.processorTime(b)-before)*10_000/float64(samples), "cpu-µs/sample")
	b.ReportMetric(0, "ns/op")
}

// processorTime returns the processor time of this process, containerd and its shims, in hundredths
// of a second.
func (n *node) processorTime(b *testing.B) (ticks int64) {
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.Fatal(err)
	}
	for _, dir := range list {
		line, err := os.ReadFile(dir + "/cmdline")
		own := filepath.Base(dir) == strconv.Itoa(os.Getpid())
		if err != nil || !own && !bytes.Contains(line, []byte(n.env.Socket)) && !n.containerd(dir) {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, i := range []int{11, 12} { // utime, stime
			t, _ := strconv.ParseInt(fields[i], 10, 64)
			ticks += t
		}
	}
	return ticks
}

// containerd reports whether a process is the test's containerd: the test binary with a variable
// that names its directory.
func (n *node) containerd(dir string) bool {
	env, err := os.ReadFile(dir + "/environ")
	return err == nil && bytes.Contains(env, []byte("="+filepath.Dir(n.env.Socket)+"\x00"))
}

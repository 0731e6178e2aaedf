package agent_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/agent/agentpb"
)

// state requests a new report and returns one kernel of it.
func (n *node) state(t *testing.T, id string) *agentpb.KernelState {
	t.Helper()
	for _, k := range n.report(t).Kernels {
		if k.KernelId == id {
			return k
		}
	}
	return nil
}

func (n *node) report(t testing.TB) *agentpb.Report {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := n.Watch(ctx, &agentpb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return e.GetReport()
}

// TestKilled kills the agent with SIGKILL and restarts it while containers are running, ended,
// partly created and unknown.
func TestKilled(t *testing.T) {
	n := newNode(t, v1.Config{})
	kill := n.spawn(t)
	n.pull(t)

	var running []*agentpb.CreateKernelRequest
	for range 5 {
		r := n.request("serve", "127.0.0.1:8080")
		n.start(t, r)
		running = append(running, r)
	}
	ends := n.request("sleep", "1")
	n.start(t, ends)
	leaving := n.request("ignore-term")
	n.start(t, leaving)
	n.waitLog(t, leaving.KernelId, "ready")
	if _, err := n.TerminateKernel(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 1, KernelId: leaving.KernelId, GraceMs: 1500, Reason: "asked before"}); err != nil {
		t.Fatal(err)
	}
	half := n.request("sleep", "600")
	n.create(t, half)
	kill()

	time.Sleep(1200 * time.Millisecond) // the kernel "ends" exits while no agent runs
	stop := n.run(t)
	for _, r := range running {
		if s := n.state(t, r.KernelId); s.GetPhase() != agentpb.KernelState_RUNNING {
			t.Errorf("after restart: %v", s)
		}
		if out, code := n.exec(t, r.KernelId, "still here", "echo"); out != "still here" || code != 0 {
			t.Errorf("exec after restart: %q, %d", out, code)
		}
		n.waitLog(t, r.KernelId, "listening")
		if got, err := n.dial(t, r.KernelId, 8080); got != "ping" {
			t.Errorf("dial after restart: %q, %v", got, err)
		}
	}
	if s := n.wait(t, ends.KernelId, agentpb.KernelState_EXITED); s.ExitCode != 0 || s.Reason != "completed" {
		t.Errorf("ended meanwhile: %v", s)
	}
	if s := n.wait(t, leaving.KernelId, agentpb.KernelState_EXITED); s.Reason != "terminated" || s.Message != "asked before" {
		t.Errorf("asked to end before: %v", s)
	}
	n.wait(t, half.KernelId, agentpb.KernelState_RUNNING)
	if _, err := n.CreateKernel(t.Context(), running[0]); err != nil {
		t.Errorf("the same launch after restart: %v", err)
	}
	n.end(t, half.KernelId, time.Second)
	stop()
	n.nothingLeft(t)
}

// TestForgottenContainer checks that a container without a record is removed.
func TestForgottenContainer(t *testing.T) {
	n := newNode(t, v1.Config{})
	n.cfg.KeepSessions = true
	stop := n.run(t)
	n.pull(t)
	kept, stray := n.request("sleep", "600"), n.request("sleep", "600")
	n.start(t, kept)
	n.start(t, stray)
	if _, err := n.TerminateKernel(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 7, KernelId: "none"}); err != nil {
		t.Fatal(err)
	}
	stop()
	lost, err := filepath.Glob(filepath.Join(n.dir, "kernels", stray.KernelId, "*"))
	if err != nil || len(lost) == 0 {
		t.Fatalf("files of the stray kernel: %v, %v", lost, err)
	}
	for _, file := range lost {
		if !strings.HasPrefix(filepath.Base(file), "disk") { // the disk files are in use by mounts
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.cfg.KeepSessions = false
	stop = n.run(t)
	if s := n.state(t, kept.KernelId); s.GetPhase() != agentpb.KernelState_RUNNING {
		t.Errorf("kept kernel: %v", s)
	}
	if s := n.state(t, stray.KernelId); s != nil {
		t.Errorf("stray kernel: %v", s)
	}
	// A leader that was deposed before the restart must still be refused.
	if _, err := n.CreateKernel(t.Context(), n.request()); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("epoch 1 after epoch 7: %v", err)
	}
	stop()
	n.nothingLeft(t)
}

// TestCycles creates and ends kernels, some before they run, and checks that nothing remains.
func TestCycles(t *testing.T) {
	n := newNode(t, v1.Config{})
	stop := n.run(t)
	n.pull(t)
	files := openFiles(t)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range 20 {
		r := n.request("sleep", "600")
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			n.create(t, r)
			if i%2 == 0 {
				n.wait(t, r.KernelId, agentpb.KernelState_RUNNING)
			} else {
				time.Sleep(rand.N(150 * time.Millisecond)) // interrupts the creation at an arbitrary point
			}
			if s := n.end(t, r.KernelId, time.Second); s.Reason != "terminated" {
				t.Errorf("%v", s)
			}
			if _, err := n.ForgetKernel(t.Context(), &agentpb.ForgetKernelRequest{Epoch: 1, KernelId: r.KernelId}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n.nothingLeft(t, filepath.Join(n.dir, "netns/.agent"))
	if left, err := os.ReadDir(filepath.Join(n.dir, "kernels")); len(left) > 0 {
		t.Errorf("records left: %v, %v", left, err)
	}
	if now := openFiles(t); now > files+10 {
		t.Errorf("%d open files, %d before", now, files)
	}
	stop()
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestImageConfiguration uses the user, entry point and environment of the image.
func TestImageConfiguration(t *testing.T) {
	n := newNode(t, v1.Config{
		User: "worker", Entrypoint: []string{"/bin/prog", "print"}, WorkingDir: "/tmp", Env: []string{"PATH=/bin"},
		Labels: map[string]string{"berth.privileged": "true"},
	})
	n.run(t)
	n.pull(t)
	r := n.request()
	r.Command = []string{"a", "b"}
	n.create(t, r)
	if out := n.output(t, r.KernelId); out != "[a b]\n" {
		t.Errorf("output %q", out)
	}
	idle := n.request()
	n.start(t, idle)
	defer n.end(t, idle.KernelId, time.Second)
	if out, _ := n.exec(t, idle.KernelId, "", "id"); out != "1000 1000\n" {
		t.Errorf("runs as %q", out)
	}
	if out, code := n.exec(t, idle.KernelId, "", "write", "/home/work/file", "x"); code != 0 {
		t.Errorf("scratch directory: %s", out)
	}
	if out, _ := n.exec(t, idle.KernelId, "", "cat", "/proc/self/status"); !strings.Contains(out, "CapEff:\t0000000000000000\n") {
		t.Error("capabilities of an ordinary user")
	}
}

package agent_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/internal/portstream"
)

// TestKernels runs all tests that do not restart the agent on one shared agent.
func TestKernels(t *testing.T) {
	n := newNode(t, v1.Config{Env: []string{"PATH=/bin", "FROM=image"}})
	volume := t.TempDir()
	if err := os.MkdirAll(filepath.Join(volume, "u/data/sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	n.cfg.Volumes = map[string]string{"home": volume}
	n.cfg.LogFileBytes, n.cfg.LogFiles = 4096, 2
	stop := n.run(t)

	t.Run("image is not there", func(t *testing.T) {
		if _, err := n.CreateKernel(t.Context(), n.request()); status.Code(err) != codes.NotFound {
			t.Error(err)
		}
	})
	n.pull(t)
	t.Run("batch", n.batch)
	t.Run("exit codes", n.exitCodes)
	t.Run("environment", n.environment)
	t.Run("limits", n.limits)
	t.Run("hardening", n.hardening)
	t.Run("terminal", n.terminal)
	t.Run("apps", n.apps)
	t.Run("isolation", n.isolation)
	t.Run("logs", n.logRotation)
	t.Run("folders", func(t *testing.T) { n.folders(t, volume) })
	t.Run("user", func(t *testing.T) { n.user(t, volume) })
	t.Run("bootstrap", n.bootstrap)
	t.Run("ignore-term", n.ignoreTerm)
	t.Run("launches", n.launches)
	t.Run("refusals", n.refusals)
	t.Run("stats", n.stats)

	t.Run("clean stop ends running kernels", func(t *testing.T) {
		n.start(t, n.request("sleep", "600"))
		n.start(t, n.request())
		stop()
		n.nothingLeft(t)
	})
}

func (n *node) batch(t *testing.T) {
	r := n.request("exit", "42")
	n.create(t, r)
	s := n.wait(t, r.KernelId, agentpb.KernelState_EXITED)
	if s.ExitCode != 42 || s.Reason != "completed" || s.StartedUnixMs == 0 || s.ExitedUnixMs < s.StartedUnixMs {
		t.Errorf("state %v", s)
	}
	var steps []string
	for _, step := range s.Steps {
		if !step.Ok {
			t.Errorf("step %v", step)
		}
		steps = append(steps, step.Name)
	}
	for _, want := range []string{"prepare-devices", "network", "mounts", "create", "start"} {
		if !strings.Contains(strings.Join(steps, " "), want) {
			t.Errorf("no step %s in %v", want, steps)
		}
	}
	if got, err := n.GetKernel(t.Context(), &agentpb.GetKernelRequest{KernelId: r.KernelId}); err != nil || !proto.Equal(got, s) {
		t.Errorf("get an ended kernel: %v, %v, want %v", got, err, s)
	}
	if _, err := n.ForgetKernel(t.Context(), &agentpb.ForgetKernelRequest{Epoch: 1, KernelId: r.KernelId}); err != nil {
		t.Error(err)
	}
	if got, err := n.GetKernel(t.Context(), &agentpb.GetKernelRequest{KernelId: r.KernelId}); status.Code(err) != codes.NotFound {
		t.Errorf("get a forgotten kernel: %v, %v", got, err)
	}
	gone, err := n.TerminateKernel(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 1, KernelId: r.KernelId})
	if err != nil || gone.Phase != agentpb.KernelState_EXITED || gone.Reason != "not-found" {
		t.Errorf("terminate after forget: %v, %v", gone, err)
	}
}

func (n *node) exitCodes(t *testing.T) {
	missing := n.request()
	missing.Command = []string{"/bin/none"}
	for name, tt := range map[string]struct {
		r    *agentpb.CreateKernelRequest
		code int32
	}{
		"command not found": {missing, 127},
		"zero":              {n.request("exit", "0"), 0},
		"orphans":           {n.request("orphan"), 0},
	} {
		n.create(t, tt.r)
		if s := n.wait(t, tt.r.KernelId, agentpb.KernelState_EXITED); s.ExitCode != tt.code || s.Reason != "completed" {
			t.Errorf("%s: %v", name, s)
		}
	}
}

func (n *node) environment(t *testing.T) {
	r := n.request("env")
	r.Environment = map[string]string{"OWN": "value", "FROM": "request", "BERTH_KERNEL_ID": "forged", "BERTH_CLUSTER_SIZE": "1"}
	r.Hostname = "main1"
	n.create(t, r)
	got := n.output(t, r.KernelId)
	want := fmt.Sprintf("BERTH_CLUSTER_SIZE=1\nBERTH_KERNEL_ID=%s\nBERTH_SESSION_ID=%s\nBERTH_SESSION_NAME=test\nFROM=request\nHOME=/home/work\nOWN=value\nPATH=/bin\n", r.KernelId, r.SessionId)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	idle := n.request()
	idle.Hostname = "main1"
	n.start(t, idle)
	defer n.end(t, idle.KernelId, time.Second)
	if out, _ := n.exec(t, idle.KernelId, "", "cat", "/etc/hosts"); !strings.Contains(out, "\tmain1\n") {
		t.Errorf("hosts %q", out)
	}
	if out, _ := n.exec(t, idle.KernelId, "", "pwd"); out != "/home/work\n" {
		t.Errorf("starts in %q", out)
	}
	if out, code := n.exec(t, idle.KernelId, "", "write", "/home/work/file", "text"); code != 0 {
		t.Errorf("write to the scratch directory: %s", out)
	}
	if _, code := n.exec(t, idle.KernelId, "", "write", "/opt/berth/runner", "text"); code == 0 {
		t.Error("the runner can be written to")
	}
}

func (n *node) limits(t *testing.T) {
	oom := n.request("alloc", "200")
	n.create(t, oom)
	if s := n.wait(t, oom.KernelId, agentpb.KernelState_EXITED); s.Reason != "oom-killed" || s.ExitCode != 137 {
		t.Errorf("out of memory: %v", s)
	}
	bomb := n.request("fork", "500")
	n.create(t, bomb)
	s := n.wait(t, bomb.KernelId, agentpb.KernelState_EXITED)
	if out := n.output(t, bomb.KernelId); !strings.Contains(out, "refused") || strings.Contains(out, "forked 500") {
		t.Errorf("fork bomb: %v, %q", s, out)
	}
}

func (n *node) hardening(t *testing.T) {
	r := n.request()
	n.start(t, r)
	defer n.end(t, r.KernelId, time.Second)
	out, _ := n.exec(t, r.KernelId, "", "cat", "/proc/self/status")
	for _, want := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in status", want)
		}
	}
	for _, args := range [][]string{{"mknod", "/dev/x"}, {"raw"}, {"unshare"}, {"write", "/proc/sys/kernel/hostname", "x"}, {"ls", "/sys/firmware/efi"}} {
		if out, code := n.exec(t, r.KernelId, "", args...); code == 0 {
			t.Errorf("%v worked: %q", args, out)
		}
	}
}

func (n *node) terminal(t *testing.T) {
	r := n.request()
	n.start(t, r)
	defer n.end(t, r.KernelId, time.Second)
	if out, code := n.exec(t, r.KernelId, "over and back", "echo"); out != "over and back" || code != 0 {
		t.Errorf("echo %q, %d", out, code)
	}
	if _, code := n.exec(t, r.KernelId, "", "exit", "7"); code != 7 {
		t.Errorf("exit code %d", code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	stream, err := n.Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(in *agentpb.ExecInput) {
		if err := stream.Send(in); err != nil {
			t.Fatal(err)
		}
	}
	send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Start{Start: &agentpb.ExecStart{
		KernelId: r.KernelId, Command: []string{"/bin/prog", "size"}, Tty: true, Size: &agentpb.WindowSize{Columns: 80, Rows: 24},
	}}})
	var out string
	for step := 0; ; {
		m, err := stream.Recv()
		if err != nil {
			t.Fatalf("%v after %q", err, out)
		}
		out += string(m.GetStdout())
		switch {
		case step == 0 && strings.Contains(out, "80 24"):
			send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Resize{Resize: &agentpb.WindowSize{Columns: 132, Rows: 50}}})
			step++
		case step == 1 && strings.Contains(out, "132 50"):
			send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Signal{Signal: 2}})
			step++
		}
		if e, ok := m.Output.(*agentpb.ExecOutput_Exit); ok {
			if step != 2 || e.Exit != 130 {
				t.Errorf("exit %d in step %d", e.Exit, step)
			}
			return
		}
	}
}

// dial connects to a port of a kernel and returns the echoed text.
func (n *node) dial(t *testing.T, id string, port int) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	c, err := portstream.Dial(ctx, n, uuid.MustParse(id), port)
	if err != nil {
		return "", err
	}
	defer c.Close()
	for _, part := range []string{"pi", "ng"} {
		if _, err := io.WriteString(c, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	return string(got), err
}

// Open implements portstream.Opener.
func (n *node) Open(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go n.agent.ServeStream(context.WithoutCancel(ctx), theirs)
	return ours, nil
}

func (n *node) apps(t *testing.T) {
	r := n.request("serve", "127.0.0.1:8080")
	n.start(t, r)
	defer n.end(t, r.KernelId, time.Second)
	n.waitLog(t, r.KernelId, "listening")
	if got, err := n.dial(t, r.KernelId, 8080); got != "ping" || err != nil {
		t.Errorf("answer %q, %v", got, err)
	}
	if _, err := n.dial(t, r.KernelId, 8081); !portstream.Refused(err) {
		t.Errorf("closed port: %v", err)
	}
	if _, err := n.dial(t, uuid.NewString(), 8080); !errdefs.IsNotFound(err) {
		t.Errorf("unknown kernel: %v", err)
	}
}

// waitLog follows a log until it contains a text.
func (n *node) waitLog(t *testing.T, id, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	stream, err := n.Logs(ctx, &agentpb.LogsRequest{KernelId: id, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	var all string
	for !strings.Contains(all, text) {
		chunk, err := stream.Recv()
		if err != nil {
			t.Fatalf("no %q in the log, %q: %v", text, all, err)
		}
		all += string(chunk.Data)
	}
}

func (n *node) isolation(t *testing.T) {
	server := n.request("serve", "0.0.0.0:9000")
	n.start(t, server)
	defer n.end(t, server.KernelId, time.Second)
	n.waitLog(t, server.KernelId, "listening")
	out, _ := n.exec(t, server.KernelId, "", "cat", "/etc/hosts")
	fields := strings.Fields(out)
	address := fields[len(fields)-2] + ":9000"

	friend, stranger := n.request(), n.request()
	friend.SessionId, friend.Hostname = server.SessionId, "sub1"
	for _, r := range []*agentpb.CreateKernelRequest{friend, stranger} {
		n.start(t, r)
		defer n.end(t, r.KernelId, time.Second)
	}
	for _, at := range []string{address, "main:9000"} {
		if out, code := n.exec(t, friend.KernelId, "", "connect", at); code != 0 {
			t.Errorf("kernel of the same session does not reach %s: %s", at, out)
		}
	}
	if out, _ := n.exec(t, server.KernelId, "", "cat", "/etc/hosts"); !strings.Contains(out, "\tsub1\n") {
		t.Errorf("the first kernel does not know the name of the second: %s", out)
	}
	if out, code := n.exec(t, stranger.KernelId, "", "connect", address); code == 0 {
		t.Errorf("kernel of another session reaches %s: %s", address, out)
	}
}

func (n *node) logRotation(t *testing.T) {
	r := n.request("lines", "1000")
	n.create(t, r)
	n.wait(t, r.KernelId, agentpb.KernelState_EXITED)
	const whole = int64(1000 * len("line 000000 of the output\n"))
	got := n.output(t, r.KernelId)
	if !strings.HasSuffix(got, "line 000999 of the output\n") || len(got) < 4096 || len(got) > 2*4096 {
		t.Errorf("kept %d bytes", len(got))
	}
	stream, err := n.Logs(t.Context(), &agentpb.LogsRequest{KernelId: r.KernelId, TailLines: 2})
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := stream.Recv()
	if err != nil || string(chunk.Data) != "line 000998 of the output\nline 000999 of the output\n" || chunk.Offset != whole-int64(len(chunk.Data)) {
		t.Errorf("tail %v, %v", chunk, err)
	}
}

func (n *node) folders(t *testing.T, volume string) {
	r := n.request()
	r.Mounts = []*agentpb.Mount{
		{Volume: "home", Path: "u/data", Target: "/home/work/data"},
		{Volume: "home", Path: "u/data", Subpath: "sub", Target: "/data-ro", ReadOnly: true},
	}
	n.start(t, r)
	defer n.end(t, r.KernelId, time.Second)
	if out, code := n.exec(t, r.KernelId, "", "write", "/home/work/data/sub/file", "text"); code != 0 {
		t.Error(out)
	}
	if text, err := os.ReadFile(filepath.Join(volume, "u/data/sub/file")); string(text) != "text" {
		t.Errorf("on the volume: %q, %v", text, err)
	}
	if out, code := n.exec(t, r.KernelId, "", "cat", "/data-ro/file"); out != "text" || code != 0 {
		t.Errorf("read-only view: %q", out)
	}
	if out, code := n.exec(t, r.KernelId, "", "write", "/data-ro/file", "changed"); code == 0 {
		t.Errorf("wrote to a read-only folder: %q", out)
	}
	missing := n.request()
	missing.Mounts = []*agentpb.Mount{{Volume: "home", Path: "u/none", Target: "/data"}}
	if _, err := n.CreateKernel(t.Context(), missing); status.Code(err) != codes.NotFound {
		t.Errorf("missing folder: %v", err)
	}
}

func (n *node) bootstrap(t *testing.T) {
	r := n.request("cat", "/home/work/made")
	r.BootstrapScript = "#!/bin/prog write /home/work/made\n"
	n.create(t, r)
	s := n.wait(t, r.KernelId, agentpb.KernelState_EXITED)
	// The interpreter received the path of the script in its arguments.
	if out := n.output(t, r.KernelId); s.ExitCode != 0 && !strings.Contains(out, "bootstrap script") {
		t.Errorf("%v, %q", s, out)
	}
	failing := n.request("exit", "0")
	failing.BootstrapScript = "echo no shell here"
	n.create(t, failing)
	s = n.wait(t, failing.KernelId, agentpb.KernelState_EXITED)
	if out := n.output(t, failing.KernelId); s.ExitCode != 127 || !strings.Contains(out, "the image has no shell") {
		t.Errorf("%v, %q", s, out)
	}
}

func (n *node) ignoreTerm(t *testing.T) {
	r := n.request("ignore-term")
	n.start(t, r)
	n.waitLog(t, r.KernelId, "ready")
	began := time.Now()
	s := n.end(t, r.KernelId, 300*time.Millisecond)
	if s.Reason != "terminated" || s.ExitCode != 137 || time.Since(began) < 300*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(began), s)
	}
	// A request right after the start finds a runner that does not forward signals yet.
	for range 8 {
		polite := n.request("sleep", "600")
		n.start(t, polite)
		if s := n.end(t, polite.KernelId, timeout); s.Reason != "terminated" || s.ExitCode != 143 || s.Message != "test is over" {
			t.Errorf("%v", s)
		}
	}
}

func (n *node) launches(t *testing.T) {
	r := n.request("sleep", "600")
	first := n.start(t, r)
	again, err := n.CreateKernel(t.Context(), r)
	if err != nil || again.ContainerId != first.ContainerId || again.Phase != agentpb.KernelState_RUNNING {
		t.Errorf("the same launch again: %v, %v", again, err)
	}
	r.LaunchEpoch = 2
	n.create(t, r)
	second := n.wait(t, r.KernelId, agentpb.KernelState_RUNNING)
	if second.LaunchEpoch != 2 || second.ContainerId == first.ContainerId {
		t.Errorf("later launch: %v", second)
	}
	r.LaunchEpoch = 1
	if _, err := n.CreateKernel(t.Context(), r); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("earlier launch: %v", err)
	}
	if _, err := n.ForgetKernel(t.Context(), &agentpb.ForgetKernelRequest{Epoch: 1, KernelId: r.KernelId}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("forget a running kernel: %v", err)
	}
	n.end(t, r.KernelId, time.Second)
}

func (n *node) refusals(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*agentpb.CreateKernelRequest)
		code codes.Code
	}{
		"no epoch":        {func(r *agentpb.CreateKernelRequest) { r.Epoch = 0 }, codes.InvalidArgument},
		"kernel id":       {func(r *agentpb.CreateKernelRequest) { r.KernelId = "../x" }, codes.InvalidArgument},
		"no memory":       {func(r *agentpb.CreateKernelRequest) { r.Allocations = r.Allocations[:1] }, codes.InvalidArgument},
		"too much memory": {func(r *agentpb.CreateKernelRequest) { r.Allocations[1].Amount = "999999999999" }, codes.ResourceExhausted},
		"negative":        {func(r *agentpb.CreateKernelRequest) { r.Allocations[0].Amount = "-1" }, codes.InvalidArgument},
		"unknown device": {func(r *agentpb.CreateKernelRequest) {
			r.Allocations = append(r.Allocations, &agentpb.Allocation{DeviceId: "cuda:0", Slot: "cuda.device", Amount: "1"})
		}, codes.NotFound},
		"mount target": {func(r *agentpb.CreateKernelRequest) {
			r.Mounts = []*agentpb.Mount{{Volume: "home", Path: "u/data", Target: "/proc"}}
		}, codes.InvalidArgument},
		"unknown volume": {func(r *agentpb.CreateKernelRequest) {
			r.Mounts = []*agentpb.Mount{{Volume: "x", Path: "u/data", Target: "/d"}}
		}, codes.FailedPrecondition},
	} {
		r := n.request()
		tt.edit(r)
		if _, err := n.CreateKernel(t.Context(), r); status.Code(err) != tt.code {
			t.Errorf("%s: %v, want %v", name, err, tt.code)
		}
	}
	if _, err := n.TerminateKernel(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 5, KernelId: "none"}); err != nil {
		t.Error(err)
	}
	if _, err := n.CreateKernel(t.Context(), n.request()); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("an earlier leader: %v", err)
	}
	n.epoch = 5 // for the tests that follow
}

func (n *node) stats(t *testing.T) {
	r := n.request("burn")
	n.start(t, r)
	defer n.end(t, r.KernelId, time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	stream, err := n.Watch(ctx, &agentpb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, k := range e.GetStats().GetKernels() {
			if k.KernelId == r.KernelId {
				for _, m := range k.Metrics {
					values[m.Name] = m.Value
				}
			}
		}
		// The kernel is limited to a tenth of a core.
		if values["cpu_util"] > 5 && values["cpu_util"] < 25 && values["mem_used"] > 0 && values["pids"] >= 2 {
			return
		}
	}
}

// nothingLeft checks that no paths of kernels remain on the node. own are the paths that a running
// agent keeps for itself.
func (n *node) nothingLeft(t *testing.T, own ...string) {
	t.Helper()
	foreign := func(paths []string) []string {
		return slices.DeleteFunc(paths, func(p string) bool { return slices.Contains(own, p) })
	}
	id, err := os.ReadFile(filepath.Join(n.dir, "id"))
	if err != nil {
		t.Fatal(err)
	}
	if left := containerdtest.Cgroups(t, "/berth/"+strings.TrimSpace(string(id))); len(left) > 0 {
		t.Errorf("cgroups left: %v", left)
	}
	if left := foreign(containerdtest.MountsBelow(t, n.dir)); len(left) > 0 {
		t.Errorf("mounts left: %v", left)
	}
	for _, pattern := range []string{"netns/*", "runtime/fifo/*", "runtime/runc/*/*", "plugins/work/*/*", "kernels/*/work", "kernels/*/etc", "kernels/*/disk", "kernels/*/disk.img"} {
		if left, _ := filepath.Glob(filepath.Join(n.dir, pattern)); len(foreign(left)) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if left, _ := filepath.Glob("/sys/class/net/b[tv][he]*"); len(left) > 0 {
		t.Logf("links on the host, maybe of other tests: %v", left)
	}
}

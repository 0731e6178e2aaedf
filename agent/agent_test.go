package agent_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// timeout bounds every wait. It is long enough for a busy machine, and no assertion depends on a
// fraction of it.
const timeout = 3 * time.Minute

func TestMain(m *testing.M) {
	if path := os.Getenv(agentVariable); path != "" {
		os.Exit(agentProcess(path))
	}
	containerdtest.Main(m)
}

// node is one agent with its own containerd, and a client that calls it as a manager would.
type node struct {
	agentpb.AgentClient
	agent *agent.Agent // that runs in this process
	env   containerdtest.Env
	dir   string
	image string
	cfg   agent.Config
	epoch int64
}

// newNode starts containerd and pushes the test image with the given configuration to a registry.
func newNode(t testing.TB, image v1.Config) *node {
	t.Helper()
	env := containerdtest.Start(t)
	n := &node{env: env, dir: containerdtest.Dir(t), epoch: 1}
	n.image, _ = runtimetest.NewRegistry(t).Push(t, "test/prog", env.Prog, image)
	n.cfg = agent.Config{
		Name: "node1", Dir: n.dir, ContainerdSocket: env.Socket, ShimPath: env.Shim, RuncPath: env.Runc,
		RunnerPath: env.Runner, PidsLimit: 256, StatsInterval: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	return n
}

// run starts the agent in this process and returns a function that stops it.
func (n *node) run(t testing.TB) (stop func()) {
	t.Helper()
	a, err := agent.New(n.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	select {
	case <-a.Ready():
	case err := <-done:
		t.Fatalf("agent ended: %v", err)
	case <-time.After(timeout):
		t.Fatal("agent is not ready")
	}
	socket := filepath.Join(n.dir, "test.sock")
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = a.GRPCServer().Serve(l) }()
	closeClient := n.connect(t, socket)
	n.agent = a
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		closeClient()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("agent: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func (n *node) connect(t testing.TB, socket string) (disconnect func()) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	n.AgentClient = agentpb.NewAgentClient(conn)
	return func() { conn.Close() }
}

// pull pulls the test image.
func (n *node) pull(t testing.TB) {
	t.Helper()
	stream, err := n.PullImage(t.Context(), &agentpb.PullImageRequest{Reference: n.image, PlainHttp: true})
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if p.Done {
			return
		}
	}
}

// request returns a request for a small kernel that runs prog with args; without args it idles.
func (n *node) request(args ...string) *agentpb.CreateKernelRequest {
	r := &agentpb.CreateKernelRequest{
		Epoch: n.epoch, KernelId: uuid.NewString(), SessionId: uuid.NewString(), LaunchEpoch: 1,
		SessionName: "test", Image: n.image,
		Allocations: []*agentpb.Allocation{
			{DeviceId: "cpu", Slot: "cpu", Amount: "0.1"},
			{DeviceId: "mem", Slot: "mem", Amount: "67108864"},
		},
	}
	if len(args) > 0 {
		r.Command = append([]string{"/bin/prog"}, args...)
	}
	return r
}

func (n *node) create(t testing.TB, r *agentpb.CreateKernelRequest) {
	t.Helper()
	if _, err := n.CreateKernel(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// start creates a kernel and waits until it runs.
func (n *node) start(t testing.TB, r *agentpb.CreateKernelRequest) *agentpb.KernelState {
	t.Helper()
	n.create(t, r)
	return n.wait(t, r.KernelId, agentpb.KernelState_RUNNING)
}

// wait returns the kernel's state once it has reached the phase. It fails if the kernel reaches a
// phase that cannot lead to it.
func (n *node) wait(t testing.TB, id string, phase agentpb.KernelState_Phase) *agentpb.KernelState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	stream, err := n.Watch(ctx, &agentpb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var last *agentpb.KernelState
	for {
		e, err := stream.Recv()
		if err != nil {
			t.Fatalf("waiting for %v: %v; last %v", phase, err, last)
		}
		states := e.GetReport().GetKernels()
		if k := e.GetKernel(); k != nil {
			states = append(states, k)
		}
		for _, s := range states {
			if s.KernelId != id {
				continue
			}
			last = s
			if s.Phase == phase {
				return s
			}
			if s.Phase == agentpb.KernelState_EXITED {
				t.Fatalf("exited instead of %v: %v", phase, s)
			}
		}
	}
}

// end terminates a kernel and waits until it has ended.
func (n *node) end(t testing.TB, id string, grace time.Duration) *agentpb.KernelState {
	t.Helper()
	_, err := n.TerminateKernel(t.Context(), &agentpb.TerminateKernelRequest{Epoch: n.epoch, KernelId: id, GraceMs: grace.Milliseconds(), Reason: "test is over"})
	if err != nil {
		t.Fatal(err)
	}
	return n.wait(t, id, agentpb.KernelState_EXITED)
}

// output follows a kernel's log to the end and returns all of it.
func (n *node) output(t testing.TB, id string) string {
	t.Helper()
	stream, err := n.Logs(t.Context(), &agentpb.LogsRequest{KernelId: id, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for {
		chunk, err := stream.Recv()
		if err == io.EOF {
			return string(all)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, chunk.Data...)
	}
}

// exec runs prog in a kernel.
func (n *node) exec(t testing.TB, id, stdin string, args ...string) (out string, code int32) {
	t.Helper()
	stream, err := n.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(in *agentpb.ExecInput) {
		if err := stream.Send(in); err != nil {
			t.Fatal(err)
		}
	}
	send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Start{Start: &agentpb.ExecStart{KernelId: id, Command: append([]string{"/bin/prog"}, args...)}}})
	if stdin != "" {
		send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Stdin{Stdin: []byte(stdin)}})
	}
	send(&agentpb.ExecInput{Input: &agentpb.ExecInput_StdinEof{StdinEof: true}})
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		switch o := m.Output.(type) {
		case *agentpb.ExecOutput_Stdout:
			out += string(o.Stdout)
		case *agentpb.ExecOutput_Stderr:
			out += string(o.Stderr)
		case *agentpb.ExecOutput_Exit:
			return out, o.Exit
		}
	}
}

package kernel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// wires is a fake network that counts the present namespaces.
type wires struct {
	mu   sync.Mutex
	held map[string]bool
	fail error // returned by Connect
}

func (w *wires) Reserve(key, session string) (network.Attachment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[key] = true
	return network.Attachment{Key: key, Session: session, Address: netip.MustParseAddr("192.0.2.1")}, nil
}

func (w *wires) Join(a network.Attachment) (network.Attachment, error) {
	_, err := w.Reserve(a.Key, a.Session)
	return a, err
}

func (w *wires) Adopt(a network.Attachment) error {
	_, err := w.Reserve(a.Key, a.Session)
	return err
}
func (w *wires) Path(a network.Attachment) string                   { return "/" + a.Key }
func (w *wires) Create(a network.Attachment) (string, error)        { return "/" + a.Key, nil }
func (w *wires) Connect(context.Context, network.Attachment) error  { return w.fail }
func (w *wires) Sweep() error                                       { return nil }
func (w *wires) Traffic(network.Attachment) (uint64, uint64, error) { return 1, 2, nil }
func (w *wires) Dial(context.Context, network.Attachment, uint16) (net.Conn, error) {
	return nil, errors.New("no network")
}

func (w *wires) Remove(a network.Attachment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, a.Key)
	return nil
}

// fixture is a node with a fake runtime. The node outlives its managers.
type fixture struct {
	*Manager
	dir     string
	sysfs   string // of a simulated machine
	volumes mount.Volumes
	host    *fake.Host
	wires   *wires
	plugins []device.PluginConfig
	devices *device.Manager
	unplug  func() // stops the plugins
	mu      sync.Mutex
	events  []*agentpb.KernelState
}

// timeout bounds every wait. It is long enough for a busy machine.
const timeout = 2 * time.Minute

const image = "registry.test/prog:latest"

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), host: fake.NewHost(runtime.Image{Reference: image, Digest: "sha256:1"}), wires: &wires{held: map[string]bool{}}}
	f.restart(t)
	if _, err := fake.New(f.host, "a").Pull(t.Context(), runtime.PullRequest{Reference: image}, func(runtime.Progress) {}); err != nil {
		t.Fatal(err)
	}
	return f
}

// restart replaces the manager by a new one, which recovers the node's state.
func (f *fixture) restart(t *testing.T) {
	t.Helper()
	if f.Manager != nil {
		f.Detach()
		f.unplug()
	}
	log := slog.New(slog.DiscardHandler)
	var err error
	if f.devices, err = device.New(device.Config{Dir: filepath.Join(f.dir, "plugins"), Sysfs: f.sysfs, Plugins: f.plugins, Logger: log}); err != nil {
		t.Fatal(err)
	}
	f.Manager, err = New(Config{
		Agent: "a", Dir: f.dir, Runtime: fake.New(f.host, "a"), Devices: f.devices, Network: f.wires, Volumes: f.volumes, Runner: "/runner", Logger: log,
		OnChange: func(s *agentpb.KernelState) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.events = append(f.events, s)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { f.devices.Run(ctx) })
	f.unplug = func() { cancel(); run.Wait() }
	t.Cleanup(func() { f.Detach(); f.unplug() })
	f.devices.AwaitReports(ctx, timeout)
}

func request(id string, command ...string) *agentpb.CreateKernelRequest {
	r := &agentpb.CreateKernelRequest{
		Epoch: 1, KernelId: id, SessionId: "s", LaunchEpoch: 1, Image: image, Environment: map[string]string{},
		Allocations: []*agentpb.Allocation{
			{DeviceId: "cpu", Slot: "cpu", Amount: "0.001"}, {DeviceId: "mem", Slot: "mem", Amount: "1048576"},
		},
	}
	if len(command) > 0 {
		r.Command = append([]string{"/bin/prog"}, command...)
	}
	return r
}

func (f *fixture) ended(t *testing.T, id string) *agentpb.KernelState {
	t.Helper()
	k, err := f.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-k.Done():
		return k.State()
	case <-time.After(timeout):
		t.Fatalf("kernel %s does not end: %v", id, k.State())
		return nil
	}
}

func (f *fixture) reaches(t *testing.T, id string, phase agentpb.KernelState_Phase) {
	t.Helper()
	k, err := f.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, func() error {
		if s := k.State(); s.Phase != phase {
			return fmt.Errorf("%v is not %v", s, phase)
		}
		return nil
	})
}

// nothingHeld checks that no resources are allocated after every kernel has ended.
func (f *fixture) nothingHeld(t *testing.T) {
	t.Helper()
	list, err := fake.New(f.host, "a").Containers(t.Context())
	if err != nil || len(list) > 0 {
		t.Errorf("containers left: %v, %v", list, err)
	}
	if held := f.devices.Allocated(); len(held) > 0 {
		t.Errorf("devices held: %v", held)
	}
	f.wires.mu.Lock()
	defer f.wires.mu.Unlock()
	if len(f.wires.held) > 0 {
		t.Errorf("network held: %v", f.wires.held)
	}
}

func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command []string
		env     map[string]string
		reason  string
		code    int32
		message string
	}{
		{"completed", []string{"exit", "3"}, nil, Completed, 3, ""},
		{"out of memory", []string{"alloc", "100"}, nil, OOMKilled, 137, "memory"},
		{"create fails", []string{"exit", "0"}, map[string]string{fake.FailCreate: "no space left"}, StartFailed, 1, "no space left"},
		{"start fails", []string{"exit", "0"}, map[string]string{fake.FailStart: "bad interpreter"}, StartFailed, 1, "bad interpreter"},
		{"removal is busy at first", []string{"exit", "0"}, map[string]string{fake.FailRemove: "2"}, Completed, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			r := request("k", tt.command...)
			r.Environment = tt.env
			if _, err := f.Create(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			s := f.ended(t, "k")
			if s.Reason != tt.reason || s.ExitCode != tt.code || !strings.Contains(s.Message, tt.message) {
				t.Errorf("%v", s)
			}
			f.nothingHeld(t)
			f.restart(t)
			if again := f.ended(t, "k"); again.Reason != tt.reason || again.ExitCode != tt.code {
				t.Errorf("after a restart: %v", again)
			}
		})
	}
}

func TestNetworkFails(t *testing.T) {
	f := newFixture(t)
	f.wires.fail = errors.New("no such device")
	if _, err := f.Create(t.Context(), request("k", "sleep", "600")); err != nil {
		t.Fatal(err)
	}
	if s := f.ended(t, "k"); s.Reason != StartFailed || !strings.Contains(s.Message, "no such device") {
		t.Errorf("%v", s)
	}
	f.nothingHeld(t)
}

// TestTerminateAnyTime ends kernels at random moments of their creation, and restarts the manager
// at others. Each kernel ends exactly once, and nothing remains.
func TestTerminateAnyTime(t *testing.T) {
	f := newFixture(t)
	for i := range 200 {
		id := fmt.Sprintf("k%d", i)
		r := request(id, "sleep", "600")
		r.Environment[fake.CreateDelay] = "3ms"
		if _, err := f.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(6 * time.Millisecond))
		if i%10 == 0 {
			f.restart(t)
			time.Sleep(rand.N(6 * time.Millisecond))
		}
		if _, err := f.Terminate(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 1, KernelId: id, Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
		if s := f.ended(t, id); s.Reason != Terminated || s.Message != "enough" {
			t.Fatalf("%v", s)
		}
	}
	f.nothingHeld(t)
}

func TestOneLifeForEachLaunch(t *testing.T) {
	f := newFixture(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := f.Create(t.Context(), request("k", "sleep", "600")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.reaches(t, "k", agentpb.KernelState_RUNNING)
	if n := f.host.Created(); n != 1 {
		t.Errorf("%d containers for one launch", n)
	}
	if err := f.Forget(1, "k"); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("forget while it runs: %v", err)
	}
	later := request("k", "exit", "0")
	later.LaunchEpoch = 2
	if _, err := f.Create(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if s := f.ended(t, "k"); s.LaunchEpoch != 2 || s.Reason != Completed {
		t.Errorf("%v", s)
	}
	if _, err := f.Create(t.Context(), request("k")); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("an earlier launch: %v", err)
	}
	f.nothingHeld(t)
}

// TestRefusedLeavesTheEndedOne checks that a refused launch leaves the exit code of the previous
// launch in place.
func TestRefusedLeavesTheEndedOne(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Create(t.Context(), request("k", "exit", "9")); err != nil {
		t.Fatal(err)
	}
	f.ended(t, "k")
	later := request("k")
	later.LaunchEpoch, later.Image = 2, "registry.test/none"
	if _, err := f.Create(t.Context(), later); !errdefs.IsNotFound(err) {
		t.Fatalf("missing image: %v", err)
	}
	if s := f.ended(t, "k"); s.ExitCode != 9 || s.LaunchEpoch != 1 {
		t.Errorf("%v", s)
	}
	f.restart(t)
	if s := f.ended(t, "k"); s.ExitCode != 9 {
		t.Errorf("after a restart: %v", s)
	}
}

func TestEpochs(t *testing.T) {
	f := newFixture(t)
	for _, step := range []struct {
		epoch int64
		ok    bool
	}{{3, true}, {3, true}, {2, false}, {4, true}, {3, false}, {0, false}, {-1, false}} {
		if err := f.Fence(step.epoch); (err == nil) != step.ok {
			t.Errorf("epoch %d: %v", step.epoch, err)
		}
	}
	f.restart(t)
	if err := f.Fence(3); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("after a restart: %v", err)
	}
}

func TestRecover(t *testing.T) {
	f := newFixture(t)
	for id, command := range map[string][]string{"runs": {"sleep", "600"}, "lost": {"sleep", "600"}, "torn": {"sleep", "600"}, "stray": {"sleep", "600"}} {
		if _, err := f.Create(t.Context(), request(id, command...)); err != nil {
			t.Fatal(err)
		}
		f.reaches(t, id, agentpb.KernelState_RUNNING)
	}
	f.Detach()
	list, err := fake.New(f.host, "a").Containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Labels()[runtime.LabelKernel] == "lost" { // as after a reboot
			if err := c.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(f.dir, "kernels/torn/record.json"), []byte(`{"version": 1`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(f.dir, "kernels/stray")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(f.dir, "kernels/never-begun/log"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	f.reaches(t, "runs", agentpb.KernelState_RUNNING)
	if s := f.ended(t, "lost"); s.Reason != Lost {
		t.Errorf("%v", s)
	}
	for _, id := range []string{"torn", "stray", "never-begun"} {
		if _, err := f.Get(id); !errdefs.IsNotFound(err) {
			t.Errorf("%s: %v", id, err)
		}
	}
	list, err = fake.New(f.host, "a").Containers(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("containers %v, %v", list, err)
	}
	f.StopAll(t.Context(), "over")
	if s := f.ended(t, "runs"); s.Reason != Terminated || s.Message != "over" {
		t.Errorf("%v", s)
	}
	if _, err := f.Create(t.Context(), request("late")); !errdefs.IsUnavailable(err) {
		t.Errorf("create while stopping: %v", err)
	}
}

func TestEventsFollowThePhases(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Create(t.Context(), request("k", "ignore-term")); err != nil {
		t.Fatal(err)
	}
	f.reaches(t, "k", agentpb.KernelState_RUNNING)
	if _, err := f.Terminate(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 1, KernelId: "k", GraceMs: 60_000}); err != nil {
		t.Fatal(err)
	}
	f.reaches(t, "k", agentpb.KernelState_STOPPING)
	// A more urgent stop request replaces the first one.
	if _, err := f.Terminate(t.Context(), &agentpb.TerminateKernelRequest{Epoch: 1, KernelId: "k", GraceMs: 1}); err != nil {
		t.Fatal(err)
	}
	f.ended(t, "k")
	f.mu.Lock()
	defer f.mu.Unlock()
	last := agentpb.KernelState_UNKNOWN
	for _, e := range f.events {
		if e.Phase < last {
			t.Errorf("%v after %v", e.Phase, last)
		}
		last = e.Phase
	}
	if last != agentpb.KernelState_EXITED {
		t.Errorf("last event %v", last)
	}
}

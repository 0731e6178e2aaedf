package device

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	ocispecs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/device/devicetest"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var buildMock = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "berth-mock")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mock")
	out, err := exec.Command("go", "build", "-o", path, "github.com/berthhq/berth/plugins/accelerator/mock").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	devicetest.Main()
	code := m.Run()
	if path, err := buildMock(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// withMock runs a manager with the mock plugin.
func withMock(t *testing.T, config string) (m *Manager, faults string) {
	t.Helper()
	path, err := buildMock()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "bd") // short, because it contains a socket
	if err != nil {
		t.Fatal(err)
	}
	faults = filepath.Join(dir, "state/mock/faults")
	if err := os.MkdirAll(faults, 0o700); err != nil {
		t.Fatal(err)
	}
	m, err = New(Config{
		Dir: dir, Node: "n", Version: "test", Incarnation: "1", Logger: slog.New(slog.DiscardHandler),
		Plugins: []PluginConfig{{Path: path, Force: true, ConfigJSON: []byte(config)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done; os.RemoveAll(dir) })
	m.AwaitReports(ctx, timeout)
	return m, faults
}

// timeout bounds every wait. It is long enough for a busy machine.
const timeout = 2 * time.Minute

func describe(m *Manager) *agentpb.Report {
	r := &agentpb.Report{}
	m.Describe(r)
	return r
}

func find(m *Manager, id string) *agentpb.Device {
	for _, d := range describe(m).Devices {
		if d.Id == id {
			return d
		}
	}
	return nil
}

func ask(device, slot, amount string) []*agentpb.Allocation {
	return []*agentpb.Allocation{{DeviceId: device, Slot: slot, Amount: amount}}
}

func TestIntrinsic(t *testing.T) {
	m, err := New(Config{Reserve: resource.Slots{resource.CPU: 500, resource.Mem: 1 << 30}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	whole := find(m, Mem).Capacity[resource.Mem]
	if err := m.Allocate("a", ask(Mem, "mem", whole)); err != nil {
		t.Fatal(err)
	}
	if err := m.Allocate("b", ask(Mem, "mem", "1")); !errdefs.IsResourceExhausted(err) {
		t.Errorf("one byte more: %v", err)
	}
	if err := m.Allocate("a", ask(Mem, "mem", whole)); err != nil {
		t.Errorf("the same again: %v", err)
	}
	m.Release("a")
	if err := m.Allocate("b", ask(Mem, "mem", "1")); err != nil {
		t.Error(err)
	}
	if err := m.Allocate("c", append(ask(CPU, "cpu", "0.1"), ask(CPU, "cpu", find(m, CPU).Capacity["cpu"])...)); !errdefs.IsResourceExhausted(err) {
		t.Errorf("too much in two parts: %v", err)
	}
	if diff := cmp.Diff(map[string]resource.Slots{Mem: {"mem": 1}}, m.Allocated()); diff != "" {
		t.Errorf("held after a refusal: %s", diff)
	}
	if _, err := New(Config{Reserve: resource.Slots{resource.CPU: 1 << 40}}); !errdefs.IsInvalidArgument(err) {
		t.Errorf("reserve of everything: %v", err)
	}
}

func TestHoldFractions(t *testing.T) {
	m, _ := withMock(t, `{"devices": 2}`)
	id := describe(m).Devices[2].Id
	for _, tt := range []struct {
		name, holder, device, slot, amount string
		ok                                 func(error) bool
	}{
		{"half", "a", id, "mock.shares", "0.5", nil},
		{"other half", "b", id, "mock.shares", "0.5", nil},
		{"a bit more", "c", id, "mock.shares", "0.01", errdefs.IsResourceExhausted},
		{"whole device and shares", "d", id, "mock.device", "1", errdefs.IsResourceExhausted},
		{"finer than the quantum", "e", describe(m).Devices[3].Id, "mock.shares", "0.005", errdefs.IsInvalidArgument},
		{"whole of the other", "f", describe(m).Devices[3].Id, "mock.device", "1", nil},
		{"shares and whole device", "g", describe(m).Devices[3].Id, "mock.shares", "0.1", errdefs.IsResourceExhausted},
		{"fraction of a whole", "h", id, "mock.device", "0.5", errdefs.IsInvalidArgument},
		{"another's slot", "i", id, "cpu", "1", errdefs.IsInvalidArgument},
		{"unknown device", "j", "mock:none", "mock.device", "1", errdefs.IsNotFound},
	} {
		err := m.Allocate(tt.holder, ask(tt.device, tt.slot, tt.amount))
		if tt.ok == nil && err != nil || tt.ok != nil && !tt.ok(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// pid returns the pid of the plugin's process, or 0 while it is not running.
func pid(t *testing.T, m *Manager) int {
	c, err := m.plugins[0].host.Get(t.Context())
	if err != nil {
		return 0
	}
	return c.Pid()
}

// kill sends SIGKILL to the plugin.
func kill(t *testing.T, m *Manager) (was int) {
	t.Helper()
	if was = pid(t, m); was == 0 { // kill(0) would kill the tests themselves
		t.Fatal("the plugin does not run")
	}
	if err := syscall.Kill(was, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return was
}

func TestPrepareSurvivesThePlugin(t *testing.T) {
	m, _ := withMock(t, `{"devices": 1, "device_nodes": true}`)
	id := describe(m).Devices[2].Id
	r := Request{ID: "k-1", Kernel: "k", Session: "s", Allocations: ask(id, "mock.shares", "0.5")}
	first, err := m.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	before := kill(t, m)
	again, err := m.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if now := pid(t, m); now == 0 || now == before {
		t.Errorf("plugin has pid %d, had %d", now, before)
	}
	if first.Edits["mock"].String() != again.Edits["mock"].String() {
		t.Errorf("other edits after a restart:\n%v\n%v", first.Edits, again.Edits)
	}
	if d := find(m, id); d == nil || !d.Allocatable {
		t.Errorf("device after a restart: %v", d)
	}
	if err := m.Unprepare(t.Context(), r.ID, r.Allocations, first.States); err != nil {
		t.Error(err)
	}
	if live := m.live("mock"); len(live) != 0 || len(m.owed) != 0 {
		t.Errorf("still alive: %v, to be undone: %v", live, m.owed)
	}
	if p := describe(m).Plugins[0]; p.Name != "mock" || p.State != agentpb.Plugin_RUNNING || p.Restarts != 1 {
		t.Errorf("plugin %v", p)
	}
}

func TestLies(t *testing.T) {
	for _, lie := range []string{"negative", "nan", "duplicate", "foreign", "million"} {
		t.Run(lie, func(t *testing.T) {
			m, faults := withMock(t, `{"devices": 2}`)
			honest := describe(m).Devices
			testenv.Replace(t, filepath.Join(faults, "lie"), lie)
			wait.Until(t, "complaint", func() bool { return describe(m).Plugins[0].Message != "" })
			if len(describe(m).Devices) != len(honest) || find(m, honest[2].Id).Capacity["mock.device"] != "1" {
				t.Errorf("the lie is believed: %v", describe(m).Devices)
			}
			if err := os.Remove(filepath.Join(faults, "lie")); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "no complaint", func() bool { return describe(m).Plugins[0].Message == "" })
		})
	}
}

func TestUnplugged(t *testing.T) {
	m, faults := withMock(t, `{"devices": 2}`)
	held, idle := describe(m).Devices[2].Id, describe(m).Devices[3].Id
	if err := m.Allocate("a", ask(held, "mock.shares", "0.5")); err != nil {
		t.Fatal(err)
	}
	testenv.Replace(t, filepath.Join(faults, "unplug"), "0 1")
	wait.Until(t, "the idle device has disappeared", func() bool { return find(m, idle) == nil })
	if d := find(m, held); d == nil || d.Health != agentpb.Device_LOST || d.Allocatable {
		t.Errorf("held device: %v", d)
	}
	if err := m.Allocate("b", ask(held, "mock.shares", "0.1")); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("hold of a lost device: %v", err)
	}
}

func TestPluginThatIsNotThere(t *testing.T) {
	m, err := New(Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Plugins: []PluginConfig{{Path: "/none/plugin"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	go m.Run(ctx)
	wait.Until(t, "disabled", func() bool { return describe(m).Plugins[0].State == agentpb.Plugin_DISABLED })
	if _, err := m.Prepare(ctx, Request{ID: "x", Allocations: ask("none:0", "none.device", "1")}); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("prepare: %v", err)
	}
}

func TestApply(t *testing.T) {
	usual := origins{nodes: []string{"/dev"}, readOnly: systemDirs}
	for _, tt := range []struct {
		name  string
		edits *acceleratorpb.ContainerEdits
		allow Allow
		class func(error) bool
	}{
		{"device", &acceleratorpb.ContainerEdits{DeviceNodes: []*acceleratorpb.DeviceNode{{Path: "/dev/x", HostPath: "/dev/null"}}}, Allow{}, nil},
		{"missing device", &acceleratorpb.ContainerEdits{DeviceNodes: []*acceleratorpb.DeviceNode{{Path: "/dev/none"}}}, Allow{}, errdefs.IsFailedPrecondition},
		{"missing optional device", &acceleratorpb.ContainerEdits{DeviceNodes: []*acceleratorpb.DeviceNode{{Path: "/dev/none", Optional: true}}}, Allow{}, nil},
		{"missing mount", &acceleratorpb.ContainerEdits{Mounts: []*acceleratorpb.Mount{{Source: "/usr/none", Target: "/x"}}}, Allow{}, errdefs.IsFailedPrecondition},
		{"missing optional mount outside of the plugin's paths", &acceleratorpb.ContainerEdits{Mounts: []*acceleratorpb.Mount{{Source: "/run/none", Target: "/x", Optional: true}}}, Allow{}, nil},
		{"mount from elsewhere", &acceleratorpb.ContainerEdits{Mounts: []*acceleratorpb.Mount{{Source: "/etc", Target: "/x"}}}, Allow{}, errdefs.IsPermissionDenied},
		{"device from elsewhere", &acceleratorpb.ContainerEdits{DeviceNodes: []*acceleratorpb.DeviceNode{{Path: "/dev/x", HostPath: "/etc/passwd"}}}, Allow{}, errdefs.IsPermissionDenied},
		{"host ipc", &acceleratorpb.ContainerEdits{HostIpc: true}, Allow{}, errdefs.IsPermissionDenied},
		{"host ipc allowed", &acceleratorpb.ContainerEdits{HostIpc: true}, Allow{HostIPC: true}, nil},
		{"capability", &acceleratorpb.ContainerEdits{Capabilities: []string{"CAP_SYS_ADMIN"}}, Allow{Capabilities: []string{"CAP_IPC_LOCK"}}, errdefs.IsPermissionDenied},
		{"capability allowed", &acceleratorpb.ContainerEdits{Capabilities: []string{"CAP_IPC_LOCK"}}, Allow{Capabilities: []string{"CAP_IPC_LOCK"}}, nil},
		{"system call", &acceleratorpb.ContainerEdits{Syscalls: []string{"bpf"}}, Allow{}, errdefs.IsPermissionDenied},
		{"sysctl", &acceleratorpb.ContainerEdits{Sysctls: map[string]string{"kernel.shmmax": "1"}}, Allow{}, errdefs.IsPermissionDenied},
		{"network", &acceleratorpb.ContainerEdits{Networks: []string{"ib0"}}, Allow{}, errdefs.IsPermissionDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := &ocispecs.Spec{Process: &ocispecs.Process{Capabilities: &ocispecs.LinuxCapabilities{}}, Linux: &ocispecs.Linux{}}
			err := apply(spec, tt.edits, tt.allow, usual)
			if tt.class == nil && err != nil || tt.class != nil && !tt.class(err) {
				t.Errorf("error %v", err)
			}
		})
	}
	spec := &ocispecs.Spec{Process: &ocispecs.Process{Env: []string{"LD_LIBRARY_PATH=/image"}}, Linux: &ocispecs.Linux{Resources: &ocispecs.LinuxResources{}}}
	err := apply(spec, &acceleratorpb.ContainerEdits{
		Env: map[string]string{"SEEN": "0"}, LibraryDirs: []string{"/vendor/lib"},
		DeviceNodes: []*acceleratorpb.DeviceNode{{Path: "/dev/x", HostPath: "/dev/null", Permissions: "r"}},
		Mounts:      []*acceleratorpb.Mount{{Source: "/usr/lib", Target: "/x"}},
		Rlimits:     []*acceleratorpb.Rlimit{{Name: "memlock", Soft: 1, Hard: 2}},
	}, Allow{}, usual)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(spec.Process.Env, " "); got != "LD_LIBRARY_PATH=/vendor/lib:/image SEEN=0" {
		t.Errorf("environment %q", got)
	}
	d := spec.Linux.Devices
	if len(d) != 1 || d[0].Path != "/dev/x" || d[0].Major != 1 || d[0].Minor != 3 {
		t.Errorf("devices %+v", d)
	}
	if c := spec.Linux.Resources.Devices; len(c) != 1 || c[0].Access != "r" || !c[0].Allow {
		t.Errorf("device rules %+v", c)
	}
	if m := spec.Mounts; len(m) != 1 || !strings.Contains(strings.Join(m[0].Options, ","), "ro") {
		t.Errorf("mounts %+v", m)
	}
}

// shown returns a manager that has received a snapshot from the plugin x.
func shown(t *testing.T, s *acceleratorpb.DeviceSnapshot) *Manager {
	t.Helper()
	m, err := New(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m.show("x", "X", s)
	return m
}

func TestCounters(t *testing.T) {
	part := func(id, slices, parent string) *acceleratorpb.Device {
		return &acceleratorpb.Device{
			Id: id, Model: "part", Allocatable: true, Capacity: map[string]string{"x.device": "1"}, Health: acceleratorpb.Health_HEALTH_HEALTHY,
			Consumes: []*acceleratorpb.CounterUse{{Set: "gpu0", Amounts: map[string]string{"slices": slices}}}, ParentId: parent,
		}
	}
	m := shown(t, &acceleratorpb.DeviceSnapshot{
		Slots: []*acceleratorpb.SlotType{{Name: "x.device", Kind: acceleratorpb.SlotType_COUNT}},
		Devices: []*acceleratorpb.Device{
			part("small", "3", ""), part("medium", "4", ""), part("all", "7", ""), part("top", "0", ""), part("cut", "0", "top"), part("piece", "0", "cut"),
		},
		Counters: []*acceleratorpb.CounterSet{{Name: "gpu0", Counters: map[string]string{"slices": "7"}}},
	})
	if err := m.Allocate("a", append(ask("x:small", "x.device", "1"), ask("x:medium", "x.device", "1")...)); err != nil {
		t.Errorf("3 and 4 of 7: %v", err)
	}
	if err := m.Allocate("b", ask("x:all", "x.device", "1")); !errdefs.IsResourceExhausted(err) {
		t.Errorf("7 more of 7: %v", err)
	}
	m.Release("a")
	if err := m.Allocate("b", ask("x:all", "x.device", "1")); err != nil {
		t.Error(err)
	}
	if err := m.Allocate("c", ask("x:piece", "x.device", "1")); err != nil {
		t.Error(err)
	}
	for _, above := range []string{"x:cut", "x:top"} {
		if err := m.Allocate("d", ask(above, "x.device", "1")); !errdefs.IsResourceExhausted(err) {
			t.Errorf("%s beside a piece of it: %v", above, err)
		}
	}
	m.Release("c")
	if err := m.Allocate("d", ask("x:top", "x.device", "1")); err != nil {
		t.Error(err)
	}
	if err := m.Allocate("c", ask("x:piece", "x.device", "1")); !errdefs.IsResourceExhausted(err) {
		t.Errorf("a part of a device that is fully allocated: %v", err)
	}
}

func TestUniqueAndUnifiedSlots(t *testing.T) {
	m := shown(t, &acceleratorpb.DeviceSnapshot{
		Slots: []*acceleratorpb.SlotType{
			{Name: "x.ring", Kind: acceleratorpb.SlotType_UNIQUE},
			{Name: "x.tile", Kind: acceleratorpb.SlotType_COUNT, Unified: true}, {Name: "x.core", Kind: acceleratorpb.SlotType_COUNT, Unified: true},
		},
		Devices: []*acceleratorpb.Device{{
			Id: "0", Model: "m", Allocatable: true, Health: acceleratorpb.Health_HEALTH_HEALTHY,
			Capacity: map[string]string{"x.ring": "4", "x.tile": "8", "x.core": "3"},
		}},
	})
	for _, c := range []struct {
		id, slot, amount string
		fits             bool
	}{
		{"a", "x.ring", "2", true},
		{"b", "x.ring", "1", false}, // two are left, but another kernel has the device exclusively
		{"a", "x.ring", "4", true},
		{"c", "x.core", "1", true},
		{"d", "x.tile", "6", false}, // a third of 8 is not left
		{"d", "x.tile", "5", true},
		{"e", "x.core", "1", false},
		{"d", "x.tile", "2", true},
		{"e", "x.core", "1", true},
	} {
		err := m.Allocate(c.id, ask("x:0", c.slot, c.amount))
		if (err == nil) != c.fits || err != nil && !errdefs.IsResourceExhausted(err) {
			t.Errorf("%s takes %s of %s: %v", c.id, c.amount, c.slot, err)
		}
	}
}

// TestPlaceOfDevices checks that the topology is reported with the node's device ids instead of the
// plugin's.
func TestPlaceOfDevices(t *testing.T) {
	node := int32(1)
	m := shown(t, &acceleratorpb.DeviceSnapshot{
		Devices: []*acceleratorpb.Device{
			{Id: "0", Groups: []string{"tray"}, PcieRoot: "pci0000:00", NumaNode: &node},
			{Id: "0/1", ParentId: "0", Consumes: []*acceleratorpb.CounterUse{{Set: "0", Amounts: map[string]string{"slices": "1"}}}},
		},
		Counters: []*acceleratorpb.CounterSet{{Name: "0", Counters: map[string]string{"slices": "7"}}},
		Links:    []*acceleratorpb.Link{{A: "0", B: "0/1", Type: acceleratorpb.Link_NVLINK, Distance: 2, Gbps: 50, P2P: true}},
	})
	r := describe(m)
	device, part := find(m, "x:0"), find(m, "x:0/1")
	if device.NumaNode == nil || *device.NumaNode != 1 || device.PcieRoot != "pci0000:00" || !slices.Equal(device.Groups, []string{"x:tray"}) {
		t.Errorf("device %v", device)
	}
	if part.Parent != "x:0" || len(part.Consumes) != 1 || part.Consumes[0].Set != "x:0" || part.Consumes[0].Amounts["slices"] != "1" {
		t.Errorf("partition %v", part)
	}
	if len(r.Counters) != 1 || r.Counters[0].Name != "x:0" || r.Counters[0].Counters["slices"] != "7" {
		t.Errorf("counters %v", r.Counters)
	}
	want := &agentpb.Link{A: "x:0", B: "x:0/1", Type: agentpb.Link_NVLINK, Distance: 2, Gbps: 50, P2P: true}
	if len(r.Links) != 1 || !proto.Equal(r.Links[0], want) {
		t.Errorf("links %v", r.Links)
	}
}

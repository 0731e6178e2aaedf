package device

import (
	"slices"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	ocispecs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// TestWhatIsNotGivenAway checks each reason for a refusal separately.
func TestWhatIsNotGivenAway(t *testing.T) {
	is := func(id string, allocatable bool, h acceleratorpb.Health) *acceleratorpb.Device {
		return &acceleratorpb.Device{Id: id, Model: "m", Allocatable: allocatable, Health: h, RejectReasons: []string{"why"},
			Capacity: map[string]string{"x.whole": "1", "x.part": "4"}}
	}
	m := shown(t, &acceleratorpb.DeviceSnapshot{
		Slots: []*acceleratorpb.SlotType{
			{Name: "x.whole", Kind: acceleratorpb.SlotType_COUNT, ExclusiveWith: []string{"x.p*"}}, {Name: "x.part", Kind: acceleratorpb.SlotType_COUNT},
		},
		Devices: []*acceleratorpb.Device{
			is("good", true, acceleratorpb.Health_HEALTH_HEALTHY), is("slow", true, acceleratorpb.Health_HEALTH_DEGRADED),
			is("unknown", true, acceleratorpb.Health_HEALTH_UNKNOWN), is("rejected", false, acceleratorpb.Health_HEALTH_HEALTHY),
			is("sick", true, acceleratorpb.Health_HEALTH_UNHEALTHY), is("lost", true, acceleratorpb.Health_HEALTH_LOST),
		},
	})
	for id, given := range map[string]bool{"good": true, "slow": true, "unknown": true, "rejected": false, "sick": false, "lost": false} {
		err := m.Allocate(id, ask("x:"+id, "x.part", "1"))
		if given && err != nil || !given && !errdefs.IsFailedPrecondition(err) {
			t.Errorf("%s: %v", id, err)
		}
	}

	// An exclusion that one slot declares is effective in both directions.
	if err := m.Allocate("other", ask("x:good", "x.whole", "1")); !errdefs.IsResourceExhausted(err) {
		t.Errorf("all beside a part: %v", err)
	}
	if err := m.Allocate("slow", ask("x:slow", "x.whole", "1")); err != nil {
		t.Error(err)
	}
	if err := m.Allocate("other", ask("x:slow", "x.part", "1")); !errdefs.IsResourceExhausted(err) {
		t.Errorf("a part beside all: %v", err)
	}

	// A refused request changes no allocation.
	if err := m.Allocate("good", ask("x:good", "x.part", "5")); !errdefs.IsResourceExhausted(err) {
		t.Errorf("5 of 4: %v", err)
	}
	if diff := cmp.Diff(resource.Slots{"x.part": 1}, m.Allocated()["x:good"]); diff != "" {
		t.Errorf("after a refusal: %s", diff)
	}

	before := find(m, "x:unknown")
	m.Release("unknown")
	if !m.ail("x:unknown", &acceleratorpb.HealthEvent{Health: acceleratorpb.Health_HEALTH_UNHEALTHY, Message: "hot"}) {
		t.Error("an event of a reported device is ignored")
	}
	if d := find(m, "x:unknown"); d.Health != agentpb.Device_UNHEALTHY || d.HealthMessage != "hot" || before.Health != agentpb.Device_UNKNOWN {
		t.Errorf("after an event: %v; the earlier report is now %v", d, before)
	}
	if err := m.Allocate("unknown", ask("x:unknown", "x.part", "1")); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("after an event: %v", err)
	}
	if m.ail("x:none", &acceleratorpb.HealthEvent{}) {
		t.Error("an event of an unknown device is not ignored")
	}
}

// TestApplyByDefault checks the container of a plugin that requests nothing beyond devices.
func TestApplyByDefault(t *testing.T) {
	spec := &ocispecs.Spec{
		Process: &ocispecs.Process{Capabilities: &ocispecs.LinuxCapabilities{}},
		Linux:   &ocispecs.Linux{Resources: &ocispecs.LinuxResources{}, Seccomp: &ocispecs.LinuxSeccomp{}, Namespaces: []ocispecs.LinuxNamespace{{Type: ocispecs.IPCNamespace}, {Type: ocispecs.PIDNamespace}}},
	}
	err := apply(spec, &acceleratorpb.ContainerEdits{
		DeviceNodes:  []*acceleratorpb.DeviceNode{{Path: "/dev/x", HostPath: "/dev/null"}},
		Mounts:       []*acceleratorpb.Mount{{Source: "/usr/lib", Target: "/x"}, {Source: "/opt", Target: "/y", Writable: true, Recursive: true}},
		Rlimits:      []*acceleratorpb.Rlimit{{Name: "core", Soft: 1, Hard: 2}},
		Capabilities: []string{"CAP_IPC_LOCK"}, Syscalls: []string{"mbind"}, PreloadLibs: []string{"/l.so"},
	}, Allow{Capabilities: []string{"CAP_IPC_LOCK"}, Syscalls: []string{"mbind"}}, origins{nodes: []string{"/dev"}, readOnly: systemDirs, writable: []string{"/"}})
	if err != nil {
		t.Fatal(err)
	}
	if c := spec.Linux.Resources.Devices; len(c) != 1 || c[0].Access != "rw" {
		t.Errorf("device rules %+v", c)
	}
	want := []ocispecs.Mount{
		{Source: "/usr/lib", Destination: "/x", Type: "bind", Options: []string{"bind", "rprivate", "nosuid", "ro"}},
		{Source: "/opt", Destination: "/y", Type: "bind", Options: []string{"rbind", "rprivate", "nosuid"}},
	}
	if diff := cmp.Diff(want, spec.Mounts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]ocispecs.POSIXRlimit{{Type: "RLIMIT_CORE", Soft: 1, Hard: 2}}, spec.Process.Rlimits); diff != "" {
		t.Error(diff)
	}
	has := []string{"CAP_IPC_LOCK"}
	c := spec.Process.Capabilities
	if !slices.Equal(c.Bounding, has) || !slices.Equal(c.Permitted, has) || !slices.Equal(c.Effective, has) || c.Inheritable != nil || c.Ambient != nil {
		t.Errorf("capabilities %+v", c)
	}
	if s := spec.Linux.Seccomp.Syscalls; len(s) != 1 || s[0].Action != ocispecs.ActAllow || !slices.Equal(s[0].Names, []string{"mbind"}) {
		t.Errorf("system calls %+v", s)
	}
	if len(spec.Linux.Namespaces) != 2 {
		t.Errorf("namespaces %v", spec.Linux.Namespaces)
	}
	if !slices.Contains(spec.Process.Env, "LD_PRELOAD=/l.so") {
		t.Errorf("environment %q", spec.Process.Env)
	}
}

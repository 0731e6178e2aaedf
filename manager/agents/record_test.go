package agents

import (
	"context"
	"log/slog"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// TestRecordKeepsTopology reports a device with a partition, and then reports
// them without all that.
func TestRecordKeepsTopology(t *testing.T) {
	client, _ := identitytest.Store(t)
	ctx := viewer.SystemContext(t.Context())
	client.ResourceGroup.Create().SetName("default").ExecX(ctx)
	s := New(Config{Client: client, Bus: event.New(nil, nil), Logger: slog.New(slog.DiscardHandler)})
	c := &conn{peer: &cluster.Peer{Name: "n"}}
	node := int32(1)
	r := &agentpb.Report{
		Name: "n", Incarnation: "1",
		Devices: []*agentpb.Device{
			{Id: "x:0", Plugin: "x", Capacity: map[string]string{"x.device": "1"}, NumaNode: &node, PcieRoot: "pci0000:00", Groups: []string{"x:tray"},
				PciAddress: "0000:03:00.0", MemoryBytes: 80 << 30, ProcessingUnits: 132},
			{
				Id: "x:0/1", Plugin: "x", Capacity: map[string]string{"x.device:1g": "1"}, Parent: "x:0",
				Consumes: []*agentpb.CounterUse{{Set: "x:0", Amounts: map[string]string{"slices": "1"}}},
			},
		},
		Counters: []*agentpb.CounterSet{{Name: "x:0", Counters: map[string]string{"slices": "7"}}},
		Links:    []*agentpb.Link{{A: "x:0", B: "x:0/1", Type: agentpb.Link_SAME_BOARD, Distance: 2, Gbps: 50, P2P: true}},
	}
	id, err := s.record(ctx, c, r, deaf{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	a := client.Agent.GetX(ctx, id)
	check("counters", report.Counters{"x:0": {"slices": 7}}, a.Counters)
	check("links", []report.Link{{A: "x:0", B: "x:0/1", Type: "same_board", Distance: 2, GBps: 50, P2P: true}}, a.Links)
	whole := client.Device.Query().Where(device.DeviceID("x:0")).OnlyX(ctx)
	check("groups", []string{"x:tray"}, whole.Groups)
	check("root", "pci0000:00", whole.PcieRoot)
	check("node", 1, *whole.NumaNode)
	check("address", "0000:03:00.0", whole.PciAddress)
	check("memory", int64(80<<30), whole.MemoryBytes)
	check("units", 132, whole.ProcessingUnits)
	part := client.Device.Query().Where(device.DeviceID("x:0/1")).OnlyX(ctx)
	check("parent", "x:0", part.Parent)
	check("consumes", []report.CounterUse{{Set: "x:0", Amounts: map[string]int64{"slices": 1}}}, part.Consumes)

	r.Counters[0].Counters["slices"] = "some"
	if _, err := s.record(ctx, c, r, deaf{}); !errdefs.IsInvalidArgument(err) {
		t.Errorf("a counter that is not a number: %v", err)
	}
	r.Counters, r.Links = nil, nil
	for _, d := range r.Devices {
		d.Parent, d.Consumes, d.Groups, d.PcieRoot, d.NumaNode = "", nil, nil, "", nil
	}
	if _, err := s.record(ctx, c, r, deaf{}); err != nil {
		t.Fatal(err)
	}
	a = client.Agent.GetX(ctx, id)
	check("no counters", report.Counters{}, a.Counters)
	check("no links", []report.Link{}, a.Links)
	part = client.Device.Query().Where(device.DeviceID("x:0/1")).OnlyX(ctx)
	check("no parent", "", part.Parent)
	check("no consumes", []report.CounterUse{}, part.Consumes)
}

// A device that its plugin reports as lost, and that then disappears, is not allocated until it is
// reported again.
func TestRecordTakesDevicesAway(t *testing.T) {
	client, _ := identitytest.Store(t)
	ctx := viewer.SystemContext(t.Context())
	client.ResourceGroup.Create().SetName("default").ExecX(ctx)
	s := New(Config{Client: client, Bus: event.New(nil, nil), Logger: slog.New(slog.DiscardHandler)})
	reports := func(devices ...*agentpb.Device) {
		t.Helper()
		r := &agentpb.Report{Name: "n", Incarnation: "1", Devices: devices}
		if _, err := s.record(ctx, &conn{peer: &cluster.Peer{Name: "n"}}, r, deaf{}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(h agentpb.Device_Health) *agentpb.Device {
		return &agentpb.Device{Id: "x:0", Plugin: "x", Capacity: map[string]string{"x.device": "1"}, Health: h, Allocatable: true}
	}
	other := &agentpb.Device{Id: "x:1", Plugin: "x", Capacity: map[string]string{"x.device": "1"}, Health: agentpb.Device_HEALTHY, Allocatable: true}
	for _, step := range []struct {
		name        string
		devices     []*agentpb.Device
		health      device.Health
		allocatable bool
	}{
		{"there", []*agentpb.Device{is(agentpb.Device_HEALTHY), other}, device.HealthHealthy, true},
		{"missing at once", []*agentpb.Device{other}, device.HealthLost, false},
		{"back", []*agentpb.Device{is(agentpb.Device_HEALTHY), other}, device.HealthHealthy, true},
		// An event of health comes before the snapshot without the device.
		{"lost", []*agentpb.Device{is(agentpb.Device_LOST), other}, device.HealthLost, true},
		{"then gone", []*agentpb.Device{other}, device.HealthLost, false},
		{"back again", []*agentpb.Device{is(agentpb.Device_DEGRADED), other}, device.HealthDegraded, true},
	} {
		reports(step.devices...)
		d := client.Device.Query().Where(device.DeviceID("x:0")).OnlyX(ctx)
		if d.Health != step.health || d.Allocatable != step.allocatable {
			t.Errorf("%s: %s, allocatable %v; want %s, %v", step.name, d.Health, d.Allocatable, step.health, step.allocatable)
		}
		if d := client.Device.Query().Where(device.DeviceID("x:1")).OnlyX(ctx); d.Health != device.HealthHealthy || !d.Allocatable {
			t.Errorf("%s: the other device is %s, allocatable %v", step.name, d.Health, d.Allocatable)
		}
	}
}

// deaf is an observer of a report without kernels.
type deaf struct{ Observer }

func (deaf) Adopt(context.Context, uuid.UUID, []*agentpb.KernelState) error { return nil }

// The allowed amounts are those of all agents with the slot. If one agent has no list, every amount
// is allowed.
func TestRecordCountsSlots(t *testing.T) {
	client, _ := identitytest.Store(t)
	ctx := viewer.SystemContext(t.Context())
	client.ResourceGroup.Create().SetName("default").ExecX(ctx)
	s := New(Config{Client: client, Bus: event.New(nil, nil), Logger: slog.New(slog.DiscardHandler)})
	for _, c := range []struct {
		agent  string
		counts []uint32
		want   []int
	}{
		{"a", []uint32{4, 16}, []int{4, 16}},
		{"b", []uint32{8}, []int{4, 8, 16}},
		{"a", []uint32{1, 8}, []int{1, 8}},
		{"c", nil, []int{}},
		{"c", []uint32{2}, []int{1, 2, 8}},
		{"b", nil, []int{}},
	} {
		r := &agentpb.Report{
			Name: c.agent, Incarnation: "1",
			Devices:   []*agentpb.Device{{Id: "x:0", Plugin: "x", Capacity: map[string]string{"x.device": "1"}}},
			SlotTypes: []*agentpb.SlotType{{Name: "x.device", Quantum: "1", AllowedCounts: c.counts}},
		}
		id, err := s.record(ctx, &conn{peer: &cluster.Peer{Name: c.agent}}, r, deaf{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, client.SlotType.Query().OnlyX(ctx).AllowedCounts); diff != "" {
			t.Errorf("after %s, logged %v: %s", c.agent, c.counts, diff)
		}
		if allow := client.Agent.GetX(ctx, id).AllowedCounts.Allow("x.device", 3); allow != (c.counts == nil) {
			t.Errorf("%s with %v gives 3: %v", c.agent, c.counts, allow)
		}
	}
}

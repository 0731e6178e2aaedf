package agents

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// If a plugin reports invalid devices once, their rows are deleted later.
func TestDevicesThatNobodyHeldAreForgotten(t *testing.T) {
	client, _ := identitytest.Store(t)
	ctx := viewer.SystemContext(t.Context())
	client.ResourceGroup.Create().SetName("default").ExecX(ctx)
	s := New(Config{Client: client, Bus: event.New(nil, nil), Logger: slog.New(slog.DiscardHandler)})
	c := &conn{peer: &cluster.Peer{Name: "n"}}
	report := func(ids ...string) uuid.UUID {
		t.Helper()
		r := &agentpb.Report{Name: "n", Incarnation: "1"}
		for _, id := range ids {
			r.Devices = append(r.Devices, &agentpb.Device{Id: id, Plugin: "x", Capacity: map[string]string{"x.device": "1"}})
		}
		agent, err := s.record(ctx, c, r, deaf{})
		if err != nil {
			t.Fatal(err)
		}
		return agent
	}
	agent := report("x:0", "x:held", "x:broken-1", "x:broken-2")
	held := client.Device.Query().Where(device.DeviceID("x:held")).OnlyX(ctx)
	w := identitytest.Fill(t, client)
	registry := client.Registry.Create().SetName("r").SetHost("r").SaveX(ctx)
	image := client.Image.Create().SetReference("r/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(registry).SaveX(ctx)
	sess := client.Session.Create().SetName("s").SetType("batch").SetSlots(resource.Slots{}).SetStatus(lifecycle.Terminated).SetDomainID(w.A.ID).SetProject(w.A.Project).
		SetOwner(w.A.Member).SetResourceGroup(client.ResourceGroup.Query().FirstX(ctx)).SetImage(image).SaveX(ctx)
	k := client.Kernel.Create().SetSession(sess).SetSlots(sess.Slots).SetAgentID(agent).SetDomainID(w.A.ID).SetProjectID(w.A.Project.ID).SetOwnerID(w.A.Member.ID).SaveX(ctx)
	client.Allocation.Create().SetSlot("x.device").SetAmount(1).SetFreedAt(time.Now()).SetSessionID(sess.ID).SetKernel(k).SetAgentID(agent).SetDevice(held).
		SetDomainID(w.A.ID).SetProjectID(w.A.Project.ID).SetOwnerID(w.A.Member.ID).ExecX(ctx)
	report("x:0", "x:broken-2")

	since := map[uuid.UUID]time.Time{}
	forget := func() int {
		t.Helper()
		if err := s.forgetDevices(ctx, since); err != nil {
			t.Fatal(err)
		}
		return client.Device.Query().CountX(ctx)
	}
	if n := forget(); n != 4 || len(since) != 2 {
		t.Errorf("at once: %d devices, %d lost", n, len(since))
	}
	for id := range since {
		since[id] = since[id].Add(-forgetAfter)
	}
	if n := forget(); n != 3 || client.Device.Query().Where(device.DeviceID("x:broken-1")).ExistX(ctx) {
		t.Errorf("an hour later: %d devices", n)
	}
	report("x:0", "x:held", "x:broken-1")
	if forget(); len(since) != 1 {
		t.Errorf("%d lost devices are remembered, want x:broken-2", len(since))
	}
}

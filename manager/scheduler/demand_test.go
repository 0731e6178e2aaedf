package scheduler

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestDemandCountsRecentShapes has three sessions of two shapes. One of the sessions has ended, and
// an agent runs another one. The shapes are read once a minute.
func TestDemandCountsRecentShapes(t *testing.T) {
	w := identitytest.New(t)
	ctx := viewer.SystemContext(t.Context())
	c := w.Client
	group := c.ResourceGroup.Create().SetName("default").SaveX(ctx)
	registry := c.Registry.Create().SetName("test").SetHost("registry.test").SaveX(ctx)
	image := c.Image.Create().SetReference("registry.test/prog:latest").SetName("prog:latest").SetArchitecture("arm64").
		SetDigest("sha256:1").SetRegistry(registry).SaveX(ctx)
	busy := c.Agent.Create().SetName("busy").SetResourceGroup(group).SaveX(ctx)
	idle := c.Agent.Create().SetName("idle").SetResourceGroup(group).SaveX(ctx)
	device := c.Device.Create().SetAgent(busy).SetDeviceID("gpu").SetCapacity(resource.Slots{"cuda.shares": 1000}).SaveX(ctx)
	half, one := resource.Slots{"cpu": 1000, "cuda.shares": 500}, resource.Slots{"cpu": 2000, "cuda.shares": 1000}
	for i, x := range []struct {
		slots  resource.Slots
		status lifecycle.Status
	}{{half, lifecycle.Running}, {one, lifecycle.Pending}, {half, lifecycle.Terminated}} {
		s := c.Session.Create().SetName(string(rune('a' + i))).SetType("batch").SetSlots(x.slots).SetStatus(x.status).
			SetDomainID(w.A.ID).SetProject(w.A.Project).SetOwner(w.A.Member).SetResourceGroup(group).SetImage(image).SaveX(ctx)
		k := c.Kernel.Create().SetSession(s).SetSlots(x.slots).SetDomainID(w.A.ID).SetProjectID(w.A.Project.ID).SetOwnerID(w.A.Member.ID).SaveX(ctx)
		if x.status == lifecycle.Running {
			c.Allocation.Create().SetSlot("cuda.shares").SetAmount(500).SetSessionID(s.ID).SetKernel(k).SetAgentID(busy.ID).SetDeviceID(device.ID).
				SetDomainID(w.A.ID).SetProjectID(w.A.Project.ID).SetOwnerID(w.A.Member.ID).ExecX(ctx)
		}
	}
	s := New(Config{Client: c, Policies: policy.New(policy.Config{Client: c})})
	read := func() ([]plan.Demand, error) { return s.readDemand(ctx) }
	snap := &plan.Snapshot{}
	now, err := time.Now(), error(nil)
	if snap.Demand, err = s.demand.get(ctx, now, read); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(snap.Demand, func(a, b plan.Demand) int { return cmp.Compare(b.Weight, a.Weight) })
	want := []plan.Demand{
		{Group: group.ID, Slots: half, Architecture: "arm64", Weight: 2},
		{Group: group.ID, Slots: one, Architecture: "arm64", Weight: 1},
	}
	if diff := gocmp.Diff(want, snap.Demand); diff != "" {
		t.Error(diff)
	}
	m, err := s.read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	turn := func(id uuid.UUID) time.Time { return m.snap.Agents[m.agents[id]].LastUsed }
	if turn(busy.ID).IsZero() || !turn(idle.ID).IsZero() {
		t.Errorf("turns of the busy and the idle agent: %v, %v", turn(busy.ID), turn(idle.ID))
	}

	c.Allocation.Delete().ExecX(ctx)
	c.Kernel.Delete().ExecX(ctx)
	if again, err := s.demand.get(ctx, now.Add(cacheAge/2), read); err != nil || len(again) != len(snap.Demand) {
		t.Errorf("half a minute later: %v, %v", again, err)
	}
	if later, err := s.demand.get(ctx, now.Add(cacheAge), read); err != nil || len(later) != 0 {
		t.Errorf("a minute later: %v, %v", later, err)
	}
}

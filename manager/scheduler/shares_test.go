package scheduler

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// shared is a group of 8 cores. The member of A uses 4 and the member of B uses 2, while the lead
// of A waits.
func shared(t *testing.T, order resourcegroup.Order) (*identitytest.World, *ent.ResourceGroup) {
	w := identitytest.New(t)
	ctx, c := viewer.SystemContext(t.Context()), w.Client
	g := c.ResourceGroup.Create().SetName("default").SetOrder(order).SaveX(ctx)
	r := c.Registry.Create().SetName("test").SetHost("registry.test").SaveX(ctx)
	image := c.Image.Create().SetReference("registry.test/prog:latest").SetName("prog:latest").SetArchitecture("amd64").
		SetDigest("sha256:1").SetRegistry(r).SaveX(ctx)
	agent := c.Agent.Create().SetName("agent").SetResourceGroup(g).SaveX(ctx)
	cpu := c.Device.Create().SetAgent(agent).SetDeviceID("cpu").SetHealth("healthy").SetCapacity(resource.Slots{"cpu": 8000}).SaveX(ctx)
	for i, x := range []struct {
		who *ent.User
		in  *ent.Project
		cpu int64
	}{{w.A.Member, w.A.Project, 4000}, {w.B.Member, w.B.Project, 2000}, {w.A.Lead, w.A.Project, 0}} {
		s := c.Session.Create().SetName(fmt.Sprint("s", i)).SetType("batch").SetSlots(resource.Slots{"cpu": x.cpu}).SetStatus(lifecycle.Pending).
			SetDomainID(x.in.DomainID).SetProject(x.in).SetOwner(x.who).SetResourceGroup(g).SetImage(image).SaveX(ctx)
		k := c.Kernel.Create().SetSession(s).SetSlots(s.Slots).SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID).SaveX(ctx)
		if x.cpu > 0 {
			s.Update().SetStatus(lifecycle.Running).ExecX(ctx)
			c.Allocation.Create().SetSlot("cpu").SetAmount(x.cpu).SetSessionID(s.ID).SetKernel(k).SetAgentID(agent.ID).SetDeviceID(cpu.ID).
				SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID).ExecX(ctx)
		}
	}
	return w, g
}

// TestWeightsOfAGroup checks that a weight of the group overrides a weight of all groups, and that
// a user's weight in the project overrides their general weight.
func TestWeightsOfAGroup(t *testing.T) {
	w, g := shared(t, resourcegroup.OrderFairShare)
	ctx, set := viewer.SystemContext(t.Context()), w.Client.ShareWeight.Create
	elsewhere := w.Client.ResourceGroup.Create().SetName("elsewhere").SaveX(ctx)
	set().SetWeight(2).SetDomainID(w.A.ID).ExecX(ctx)
	set().SetWeight(3).SetDomainID(w.A.ID).SetResourceGroup(g).ExecX(ctx)
	set().SetWeight(9).SetDomainID(w.A.ID).SetResourceGroup(elsewhere).ExecX(ctx)
	set().SetWeight(4).SetProject(w.B.Project).ExecX(ctx)
	set().SetWeight(5).SetUser(w.A.Member).SetResourceGroup(g).ExecX(ctx)
	set().SetWeight(6).SetUser(w.A.Member).SetWithinProject(w.A.Project).ExecX(ctx)
	set().SetWeight(7).SetUser(w.B.Member).ExecX(ctx)
	got := map[uuid.UUID]float64{}
	for _, h := range holders(t, w, w.Superadmin, g) {
		got[last(h)] = h.Weight
	}
	want := map[uuid.UUID]float64{
		w.A.ID: 3, w.B.ID: 1, w.A.Project.ID: 1, w.B.Project.ID: 4, w.A.Member.ID: 6, w.A.Lead.ID: 1, w.B.Member.ID: 7,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHoldersStand has one domain that uses twice as much as the other.
func TestHoldersStand(t *testing.T) {
	for _, order := range []resourcegroup.Order{resourcegroup.OrderFairShare, resourcegroup.OrderFifo, resourcegroup.OrderDrf} {
		t.Run(string(order), func(t *testing.T) {
			w, g := shared(t, order)
			list := holders(t, w, w.Superadmin, g)
			scopes := map[string]int{}
			for _, h := range list {
				scopes[h.Scope]++
				if last(h) != w.A.ID && (order != resourcegroup.OrderDrf || last(h) != w.A.Member.ID) {
					continue
				}
				if h.Held["cpu"] != 4000 || h.Used < 0.66 || h.Used > 0.67 {
					t.Errorf("%s has %v, %g of the usage", h.Scope, h.Held, h.Used)
				}
				if order != resourcegroup.OrderDrf && (h.Due != 0.5 || h.Waiting != 1) {
					t.Errorf("%s is due %g, %d wait", h.Scope, h.Due, h.Waiting)
				}
			}
			want := map[string]int{plan.ScopeDomain: 2, plan.ScopeProject: 2, plan.ScopeUser: 3}
			if order == resourcegroup.OrderDrf {
				want = map[string]int{plan.ScopeUser: 3}
			}
			if diff := gocmp.Diff(want, scopes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhoSeesHolders checks that users see themselves and their own project and domain, and that
// administrators see everything below their scope.
func TestWhoSeesHolders(t *testing.T) {
	w, g := shared(t, resourcegroup.OrderFairShare)
	for _, c := range []struct {
		who  *ent.User
		want []uuid.UUID
	}{
		{w.Superadmin, []uuid.UUID{w.A.ID, w.A.Project.ID, w.A.Member.ID, w.A.Lead.ID, w.B.ID, w.B.Project.ID, w.B.Member.ID}},
		{w.Monitor, []uuid.UUID{w.A.ID, w.A.Project.ID, w.A.Member.ID, w.A.Lead.ID, w.B.ID, w.B.Project.ID, w.B.Member.ID}},
		{w.A.Admin, []uuid.UUID{w.A.ID, w.A.Project.ID, w.A.Member.ID, w.A.Lead.ID}},
		{w.A.Lead, []uuid.UUID{w.A.ID, w.A.Project.ID, w.A.Member.ID, w.A.Lead.ID}},
		{w.A.Member, []uuid.UUID{w.A.ID, w.A.Project.ID, w.A.Member.ID}},
		{w.A.Loner, []uuid.UUID{w.A.ID}},
		{w.B.Member, []uuid.UUID{w.B.ID, w.B.Project.ID, w.B.Member.ID}},
	} {
		want, got := map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
		for _, id := range c.want {
			want[id] = true
		}
		for _, h := range holders(t, w, c.who, g) {
			got[last(h)] = true
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.who.Username, diff)
		}
	}
}

func holders(t *testing.T, w *identitytest.World, as *ent.User, g *ent.ResourceGroup) []*plan.Holder {
	t.Helper()
	of, err := New(Config{Client: w.Client}).ShareHolders(w.As(t, as), []uuid.UUID{g.ID})
	if err != nil {
		t.Fatal(err)
	}
	return of[g.ID]
}

func last(h *plan.Holder) uuid.UUID {
	switch h.Scope {
	case plan.ScopeDomain:
		return h.Domain
	case plan.ScopeProject:
		return h.Project
	}
	return h.Owner
}

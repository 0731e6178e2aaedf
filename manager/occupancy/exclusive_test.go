package occupancy_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/occupancy"
)

// floor is an agent with a row, and the reports that the test sets.
type floor struct {
	*identitytest.World
	agentpb.AgentClient
	ctx     context.Context
	session func(name string) *ent.Session
	agent   *ent.Agent
	report  *agentpb.Report
}

func newFloor(t *testing.T) *floor {
	client, _ := identitytest.Store(t)
	f := &floor{World: identitytest.Fill(t, client), ctx: viewer.SystemContext(t.Context()), report: &agentpb.Report{}}
	g := client.ResourceGroup.Create().SetName("default").SaveX(f.ctx)
	r := client.Registry.Create().SetName("r").SetHost("r").SaveX(f.ctx)
	i := client.Image.Create().SetReference("r/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(r).SaveX(f.ctx)
	f.session = func(name string) *ent.Session {
		return client.Session.Create().SetName(name).SetType("interactive").SetStatus(lifecycle.Running).SetSlots(resource.Slots{}).
			SetDomain(f.A.Domain).SetProject(f.A.Project).SetOwner(f.A.Member).SetResourceGroup(g).SetImage(i).SaveX(f.ctx)
	}
	f.agent = client.Agent.Create().SetName("a").SetStatus(agent.StatusAlive).SetResourceGroup(g).SaveX(f.ctx)
	client.SlotType.Create().SetName("x.device").SetKind("count").SetExclusiveWith([]string{"x.sh*"}).ExecX(f.ctx)
	client.SlotType.Create().SetName("x.shares").SetKind("shares").ExecX(f.ctx)
	return f
}

func (f *floor) RPC(string) (agentpb.AgentClient, error) { return f, nil }

func (f *floor) Watch(context.Context, *agentpb.WatchRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[agentpb.Event], error) {
	return watch{report: f.report}, nil
}

type watch struct {
	grpc.ServerStreamingClient[agentpb.Event]
	report *agentpb.Report
}

func (w watch) Recv() (*agentpb.Event, error) {
	return &agentpb.Event{Event: &agentpb.Event_Report{Report: w.report}}, nil
}

func (f *floor) device(name string) *ent.Device {
	return f.Client.Device.Create().SetAgent(f.agent).SetDeviceID(name).SetHealth(device.HealthHealthy).
		SetCapacity(resource.Slots{"x.device": 1, "x.shares": 1000}).SaveX(f.ctx)
}

// runs is a session that has something of a device, on the agent and in the database.
func (f *floor) runs(name string, d *ent.Device, slot string, amount int64) *ent.Allocation {
	s := f.session(name)
	k := f.Client.Kernel.Create().SetSession(s).SetSlots(s.Slots).SetStatus(lifecycle.Running).SetAgent(f.agent).
		SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID).SaveX(f.ctx)
	f.report.Kernels = append(f.report.Kernels, &agentpb.KernelState{
		KernelId: k.ID.String(), SessionId: s.ID.String(), LaunchEpoch: k.LaunchEpoch, Phase: agentpb.KernelState_RUNNING,
		Allocations: []*agentpb.Allocation{{DeviceId: d.DeviceID, Slot: slot, Amount: resource.Format(slot, amount)}},
	})
	return f.Client.Allocation.Create().SetSlot(slot).SetAmount(amount).SetSessionID(s.ID).SetKernel(k).SetAgentID(f.agent.ID).SetDeviceID(d.ID).
		SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID).SaveX(f.ctx)
}

// An allocation that was freed by mistake is restored, unless the device was allocated in a way
// that excludes it in the meantime. Allocations that exclude each other are found.
func TestExclusiveSlots(t *testing.T) {
	f := newFloor(t)
	s := occupancy.New(occupancy.Config{
		Client: f.Client, Bus: event.New(nil, nil), Agents: f, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	free, taken, both := f.device("free"), f.device("taken"), f.device("both")
	mine := f.runs("mine", free, "x.device", 1).Update().SetFreedAt(time.Now()).SaveX(f.ctx)
	late := f.runs("late", taken, "x.device", 1).Update().SetFreedAt(time.Now()).SaveX(f.ctx)
	f.runs("other", taken, "x.shares", 500)
	f.runs("whole", both, "x.device", 1)
	f.runs("part", both, "x.shares", 500)

	f.Elect(t, 1)
	ctx, cancel := context.WithCancel(f.ctx)
	led := make(chan struct{})
	go func() {
		defer close(led)
		s.Lead(ctx, 1)
	}()
	t.Cleanup(func() {
		cancel()
		<-led
	})
	held := func(a *ent.Allocation) bool { return f.Client.Allocation.GetX(f.ctx, a.ID).FreedAt == nil }
	kinds := map[occupancy.Kind]occupancy.Drift{}
	for deadline := time.Now().Add(2 * time.Minute); !held(mine); {
		if time.Now().After(deadline) {
			t.Fatal("a device that was freed by mistake is not allocated again")
		}
		a, err := s.AuditOccupancy(f.As(t, f.Superadmin))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range a.Audit.Drift { // the leader audits, too, and may have been first
			if d.Device != "free" {
				kinds[d.Kind] = d
			}
		}
	}
	if held(late) {
		t.Error("a device that excludes another session's slot is allocated again")
	}
	if d := kinds[occupancy.Freed]; d.Repaired || d.Device != "taken" || *d.Session != late.SessionID {
		t.Errorf("freed: %+v", d)
	}
	if d := kinds[occupancy.Exceeded]; d.Device != "both" || !strings.Contains(d.Detail, "x.device and x.shares, which exclude each other") {
		t.Errorf("exceeded: %+v", d)
	}
}

// Every kernel with an allocation of a missing device is listed once.
func TestWhoHoldsWhatIsGone(t *testing.T) {
	f := newFloor(t)
	s := occupancy.New(occupancy.Config{Client: f.Client, Agents: f, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	d := f.device("gone")
	one, two := f.runs("one", d, "x.shares", 500), f.runs("two", d, "x.shares", 250)
	d.Update().SetHealth(device.HealthLost).ExecX(f.ctx)
	a, err := s.Look(f.As(t, f.Superadmin))
	if err != nil {
		t.Fatal(err)
	}
	reported := map[uuid.UUID]uuid.UUID{}
	for _, d := range a.Drift {
		if d.Kind != occupancy.Gone || d.Device != "gone" || d.Kernel == nil || d.Session == nil {
			t.Errorf("%+v", d)
			continue
		}
		reported[*d.Session] = *d.Kernel
	}
	if len(a.Drift) != 2 || reported[one.SessionID] != one.KernelID || reported[two.SessionID] != two.KernelID {
		t.Errorf("%+v", a.Drift)
	}
}

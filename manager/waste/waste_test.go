package waste_test

import (
	"context"
	"log/slog"
	"math/big"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionuse"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/manager/capacity"
	"github.com/berthhq/berth/manager/identity/identitytest"
	history "github.com/berthhq/berth/manager/series"
	"github.com/berthhq/berth/manager/sizing"
	"github.com/berthhq/berth/manager/waste"
)

const gib = 1 << 30

// bed is a cluster of two machines of two accelerators.
type bed struct {
	*identitytest.World
	t      *testing.T
	ctx    context.Context
	group  *ent.ResourceGroup
	image  *ent.Image
	agents []*ent.Agent
	gpus   []*ent.Device
}

func newBed(t *testing.T) *bed {
	t.Parallel()
	b := &bed{World: identitytest.New(t), t: t}
	b.ctx = b.As(t, b.Superadmin)
	c := b.Client
	b.group = c.ResourceGroup.Create().SetName("g").SetPublic(true).SaveX(b.ctx)
	reg := c.Registry.Create().SetName("r").SetHost("r.test").SaveX(b.ctx)
	b.image = c.Image.Create().SetReference("r.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(b.ctx)
	c.SlotType.Create().SetName("cuda.device").SetKind("count").ExecX(b.ctx)
	for _, name := range []string{"n1", "n2"} {
		a := c.Agent.Create().SetName(name).SetResourceGroup(b.group).SaveX(b.ctx)
		b.agents = append(b.agents, a)
		b.gpus = append(b.gpus, c.Device.Create().SetAgent(a).SetDeviceID("gpu").SetCapacity(resource.Slots{"cuda.device": 2}).SetHealth("healthy").SaveX(b.ctx))
	}
	return b
}

// runs adds a session of a user that has one accelerator of each of the machines.
func (b *bed) runs(u *ent.User, name string, since time.Time, machines ...int) *ent.Session {
	c := b.Client
	s := c.Session.Create().SetName(name).SetType("batch").SetStatus(lifecycle.Running).SetSlots(resource.Slots{"mem": 8 * gib, "cuda.device": 1}).SetCreatedAt(since).SetStartedAt(since).
		SetDomainID(b.A.ID).SetProject(b.A.Project).SetOwner(u).SetResourceGroup(b.group).SetImage(b.image).SaveX(b.ctx)
	for _, m := range machines {
		k := c.Kernel.Create().SetSession(s).SetSlots(s.Slots).SetStatus(lifecycle.Running).SetAgent(b.agents[m]).SetDomainID(b.A.ID).SetProjectID(b.A.Project.ID).SetOwnerID(u.ID).SaveX(b.ctx)
		c.Allocation.Create().SetSlot("cuda.device").SetAmount(1).SetCreatedAt(since).SetSessionID(s.ID).SetKernel(k).SetAgentID(b.agents[m].ID).SetDevice(b.gpus[m]).
			SetDomainID(b.A.ID).SetProjectID(b.A.Project.ID).SetOwnerID(u.ID).ExecX(b.ctx)
	}
	return s
}

// used adds the summary of a measure; without a quality of unknown it has values.
func (b *bed) used(s *ent.Session, metric, slot string, asked, mean, peak float64, quality sessionuse.Quality) {
	row := b.Client.SessionUse.Create().SetSessionID(s.ID).SetMetric(metric).SetSlot(slot).SetAsked(asked).SetQuality(quality).SetSeconds(3600).
		SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID)
	if quality != sessionuse.QualityUnknown {
		row.SetMean(mean).SetP95(mean).SetPeak(peak)
	}
	row.ExecX(b.ctx)
}

func (b *bed) read(as *ent.User, r waste.WasteReport) []waste.WasteRow {
	b.t.Helper()
	rows, err := waste.Read(b.As(b.t, as), b.Client, waste.WasteInput{Report: r})
	if err != nil {
		b.t.Fatalf("%s: %v", r, err)
	}
	return rows
}

func TestReports(t *testing.T) {
	b := newBed(t)
	hour := clock.Now().Add(-time.Hour)
	idle := b.runs(b.A.Member, "idle", hour, 0)
	b.used(idle, "cuda_util", "cuda.device", 100, 0.1, 1, sessionuse.QualityMeasured)
	b.used(idle, "mem_used", "mem", 8*gib, gib, gib, sessionuse.QualityMeasured)
	busy := b.runs(b.A.Lead, "busy", hour, 0)
	b.used(busy, "cuda_util", "cuda.device", 100, 90, 99, sessionuse.QualityMeasured)
	b.used(busy, "mem_used", "mem", 8*gib, 7*gib, 8*gib, sessionuse.QualityMeasured)
	dark := b.runs(b.A.Lead, "dark", hour)
	b.used(dark, "cuda_util", "cuda.device", 0, 0, 0, sessionuse.QualityUnknown)

	rows := b.read(b.A.Lead, waste.UnusedAccelerators)
	if len(rows) != 2 || rows[0].SessionName != "idle" || rows[0].Quality != "measured" || rows[0].UserEmail != b.A.Member.Email || *rows[0].Numbers[1].Value != 0.1 ||
		rows[1].SessionName != "dark" || rows[1].Quality != "unknown" || rows[1].Numbers[1].Value != nil {
		t.Errorf("unused accelerators: %+v", rows)
	}
	if rows := b.read(b.A.Member, waste.UnusedAccelerators); len(rows) != 1 {
		t.Errorf("a member sees sessions of others: %+v", rows)
	}
	if rows := b.read(b.B.Admin, waste.UnusedAccelerators); len(rows) != 0 {
		t.Errorf("an admin of another domain: %+v", rows)
	}
	if rows := b.read(b.Superadmin, waste.LowUse); len(rows) != 1 || rows[0].User != b.A.Member.ID.String() || *rows[0].Numbers[0].Value != 3600 {
		t.Errorf("low use: %+v", rows)
	}
	if rows := b.read(b.Superadmin, waste.MemoryAboveNeed); len(rows) != 1 || rows[0].SessionName != "idle" || *rows[0].Numbers[1].Value != gib {
		t.Errorf("memory above need: %+v", rows)
	}
	if rows := b.read(b.Superadmin, waste.UnusedMemory); len(rows) != 2 || *rows[0].Numbers[1].Value != 7*gib*3600 {
		t.Errorf("unused memory: %+v", rows)
	}
	if rows := b.read(b.Superadmin, waste.MostSlots); len(rows) != 2 || *rows[0].Numbers[0].Value != 1 {
		t.Errorf("most slots: %+v", rows)
	}
	if rows := b.read(b.Superadmin, waste.UnusedMachines); len(rows) != 1 || rows[0].AgentName != "n2" || *rows[0].Numbers[1].Value != 1 {
		t.Errorf("unused machines: %+v", rows)
	}
	if _, err := waste.Read(b.As(t, b.A.Admin), b.Client, waste.WasteInput{Report: waste.UnusedMachines}); !errdefs.IsPermissionDenied(err) {
		t.Errorf("a domain admin reads the machines: %v", err)
	}
	if rows := b.read(b.Superadmin, waste.Fragmentation); len(rows) != 0 {
		t.Errorf("fragmentation: %+v", rows)
	}
	b.runs(b.A.Member, "spread", hour, 0, 1)
	if rows := b.read(b.Superadmin, waste.Fragmentation); len(rows) != 1 || rows[0].SessionName != "spread" || *rows[0].Numbers[2].Value != 2 {
		t.Errorf("fragmentation: %+v", rows)
	}
	if rows := b.read(b.Superadmin, waste.SmallerDevice); len(rows) != 0 {
		t.Errorf("smaller device: %+v", rows)
	}
	b.Client.SessionUse.Update().Where(sessionuse.SessionID(idle.ID), sessionuse.Metric("cuda_util")).SetSuggested(1).ExecX(b.ctx)
	b.Client.Session.UpdateOne(idle).SetSlots(resource.Slots{"cuda.device": 2}).ExecX(b.ctx)
	if rows := b.read(b.Superadmin, waste.SmallerDevice); len(rows) != 1 || *rows[0].Numbers[0].Value != 2 || *rows[0].Numbers[1].Value != 1 {
		t.Errorf("smaller device: %+v", rows)
	}
}

func TestWaitsAndLimits(t *testing.T) {
	b := newBed(t)
	c := b.Client
	for i, name := range []string{"a", "b", "c"} {
		begin := clock.Now().Add(-time.Duration(i+1) * time.Hour)
		c.Session.Create().SetName(name).SetType("batch").SetStatus(lifecycle.Terminated).SetSlots(resource.Slots{}).SetLifetime(36_000).SetStartedAt(begin).SetTerminatedAt(begin.Add(time.Minute)).
			SetTerminationReason(session.TerminationReasonCompleted).SetDomainID(b.A.ID).SetProject(b.A.Project).SetOwner(b.A.Member).SetResourceGroup(b.group).SetImage(b.image).ExecX(b.ctx)
	}
	if rows := b.read(b.Superadmin, waste.LongLimits); len(rows) != 1 || *rows[0].Numbers[0].Value != 3 || *rows[0].Numbers[2].Value != 60 {
		t.Errorf("long limits: %+v", rows)
	}
	c.Session.Create().SetName("w").SetType("batch").SetStatus(lifecycle.Pending).SetSlots(resource.Slots{}).SetCreatedAt(clock.Now().Add(-time.Hour)).
		SetDomainID(b.A.ID).SetProject(b.A.Project).SetOwner(b.A.Member).SetResourceGroup(b.group).SetImage(b.image).ExecX(b.ctx)
	if rows := b.read(b.A.Member, waste.LongestWaits); len(rows) != 1 || *rows[0].Numbers[0].Value < 3600 {
		t.Errorf("longest waits: %+v", rows)
	}
}

// The parts of the capacity of a cluster add up, and follow what is recorded of machines.
func TestCapacityOfACluster(t *testing.T) {
	b := newBed(t)
	const epoch = 3
	b.Elect(t, epoch)
	s := capacity.New(b.Client, slog.New(slog.DiscardHandler))
	begin := clock.Now().Add(-4 * time.Hour)
	record := func(after time.Duration) {
		t.Helper()
		for range 2 { // the second time nothing has changed
			if err := s.Record(t.Context(), epoch, begin.Add(after)); err != nil {
				t.Fatal(err)
			}
		}
	}
	record(0)
	measured := b.runs(b.A.Member, "measured", begin.Add(time.Hour), 0)
	b.used(measured, "cuda_util", "cuda.device", 100, 25, 50, sessionuse.QualityMeasured)
	b.Client.Agent.UpdateOne(b.agents[1]).SetSchedulable(false).ExecX(b.ctx)
	record(2 * time.Hour)
	if n := b.Client.CapacitySpan.Query().CountX(b.ctx); n != 3 {
		t.Errorf("%d spans, want 3", n)
	}
	to := begin.Add(4 * time.Hour)
	got, err := capacity.Report(b.ctx, b.Client, capacity.CapacityReportInput{From: begin.Add(-time.Hour), To: &to, By: []capacity.CapacityDimension{capacity.ByResourceGroup}})
	if err != nil || len(got.Rows) != 1 || !got.Since.Equal(begin) {
		t.Fatalf("%+v, %v", got, err)
	}
	r := got.Rows[0]
	want := map[string]string{"capacity": "57600", "used": "2700", "idle": "8100", "unallocated": "32400", "out": "14400", "promised": "0", "unmeasured": "0", "beyond": "0"}
	for name, value := range map[string]string{"capacity": r.Capacity, "used": r.Used, "idle": r.Idle, "unallocated": r.Unallocated, "out": r.OutOfService, "promised": r.Promised, "unmeasured": r.Unmeasured, "beyond": r.Beyond} {
		have, _ := new(big.Rat).SetString(value)
		if expect, _ := new(big.Rat).SetString(want[name]); have.Cmp(expect) != 0 {
			t.Errorf("%s is %s, want %s", name, value, want[name])
		}
	}
	if r.Keys[0].Label != "g" {
		t.Errorf("%+v", r.Keys[0])
	}
	if _, err := capacity.Report(b.As(t, b.A.Admin), b.Client, capacity.CapacityReportInput{From: begin}); !errdefs.IsPermissionDenied(err) {
		t.Errorf("a domain admin reads the capacity: %v", err)
	}
	if err := s.Record(t.Context(), epoch-1, begin); err == nil {
		t.Error("an old leader records capacity")
	}
}

// steady is a history in which every kernel has a constant use of its memory.
type steady struct{ from, to time.Time }

func (h steady) Read(_ context.Context, q history.Query) (series.Lines, time.Duration, error) {
	out := series.Lines{}
	for kernel := range q.Subjects {
		l := out.Line(kernel, series.Key{Name: "mem_used"})
		for at := h.from; at.Before(h.to); at = at.Add(10 * time.Second) {
			l.Append(series.Line{Unit: "bytes", Capacity: 8 * gib, Quality: "measured", Points: []series.Point{series.Sample(at, gib)}})
		}
	}
	return out, 10 * time.Second, nil
}

// A session is summarized while it runs and for the last time after its end.
func TestUseIsCollected(t *testing.T) {
	b := newBed(t)
	now := clock.Now()
	begin := now.Add(-time.Hour).Truncate(10 * time.Second)
	run := b.runs(b.A.Member, "runs", begin, 0)
	s := sizing.New(b.Client, steady{begin, now}, slog.New(slog.DiscardHandler))
	uses := func(id uuid.UUID) []*ent.SessionUse {
		t.Helper()
		if err := s.Collect(t.Context(), clock.Now()); err != nil {
			t.Fatal(err)
		}
		return b.Client.SessionUse.Query().Where(sessionuse.SessionID(id)).Order(sessionuse.ByMetric()).AllX(b.ctx)
	}
	list := uses(run.ID)
	if len(list) != 3 || list[2].Metric != "mem_used" || list[2].Final || *list[2].Suggested != 1280<<20 { // 1.2 GiB, in steps of 64 MiB
		t.Fatalf("%+v", list)
	}
	if list[1].Metric != "cuda_util" || list[1].Quality != sessionuse.QualityUnknown || list[1].Mean != nil {
		t.Errorf("%+v", list[1])
	}
	end := now.Add(-5 * time.Minute)
	b.Client.Session.UpdateOne(run).SetStatus(lifecycle.Terminated).SetTerminatedAt(end).ExecX(b.ctx)
	b.Client.SessionEvent.Create().SetSession(run).SetAt(end).SetPhase("terminate").SetFromStatus(lifecycle.Running).SetToStatus(lifecycle.Terminated).SetResult("success").ExecX(b.ctx)
	list = uses(run.ID)
	if len(list) != 3 || !list[2].Final {
		t.Errorf("%+v", list)
	}
	before := list[2].UpdatedAt
	if list = uses(run.ID); !list[2].UpdatedAt.Equal(before) {
		t.Error("a final summary was computed again")
	}
}

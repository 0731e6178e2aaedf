package stats_test

import (
	"context"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/stats"
)

func systemContext(t *testing.T) context.Context { return viewer.SystemContext(t.Context()) }

func fieldOf(err error) string {
	p, _ := problem.From(err)
	return p.Field
}

// ledger is a world with allocations at random times, over a month end and the change of clocks of Berlin.
type ledger struct {
	*identitytest.World
	t      *testing.T
	random *rand.Rand
	rows   []entry
	begin  time.Time
}

// entry is an allocation.
type entry struct {
	owner, project, domain uuid.UUID
	slot                   string
	amount                 int64
	from, to               time.Time
}

func newLedger(t *testing.T, n int) *ledger {
	t.Parallel()
	l := &ledger{World: identitytest.New(t), t: t, random: rand.New(rand.NewPCG(3, 4)), begin: time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC)}
	ctx, c := systemContext(t), l.Client
	group := c.ResourceGroup.Create().SetName("g").SaveX(ctx)
	node := c.Agent.Create().SetName("n").SetResourceGroup(group).SaveX(ctx)
	device := c.Device.Create().SetAgent(node).SetDeviceID("cpu").SetPlugin("cpu").SetCapacity(resource.Slots{}).SaveX(ctx)
	reg := c.Registry.Create().SetName("r").SetHost("r.test").SaveX(ctx)
	image := c.Image.Create().SetReference("r.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(ctx)
	var kernels []*ent.Kernel
	for _, d := range []identitytest.Domain{l.A, l.B} {
		for _, u := range []*ent.User{d.Member, d.Lead} {
			s := c.Session.Create().SetName(u.Username).SetType("batch").SetStatus(lifecycle.Running).SetSlots(resource.Slots{}).
				SetDomainID(d.ID).SetProject(d.Project).SetOwner(u).SetResourceGroup(group).SetImage(image).SaveX(ctx)
			kernels = append(kernels, c.Kernel.Create().SetSession(s).SetSlots(resource.Slots{}).SetStatus(lifecycle.Running).SetAgent(node).
				SetDomainID(d.ID).SetProjectID(d.Project.ID).SetOwnerID(u.ID).SaveX(ctx))
		}
	}
	var batch []*ent.AllocationCreate
	for range n {
		k := kernels[l.random.IntN(len(kernels))]
		from := l.begin.Add(time.Duration(l.random.Int64N(int64(8 * 24 * time.Hour)))).Truncate(time.Microsecond)
		e := entry{k.OwnerID, k.ProjectID, k.DomainID, []string{"cpu", "mem", "cuda.shares"}[l.random.IntN(3)], 1 + l.random.Int64N(1<<40), from,
			from.Add(time.Duration(l.random.Int64N(int64(3 * 24 * time.Hour)))).Truncate(time.Microsecond)}
		row := c.Allocation.Create().SetID(id.New(id.Allocation)).SetSlot(e.slot).SetAmount(e.amount).SetCreatedAt(e.from).SetSessionID(k.SessionID).SetKernel(k).SetAgentID(node.ID).
			SetDevice(device).SetDomainID(e.domain).SetProjectID(e.project).SetOwnerID(e.owner)
		if l.random.IntN(10) > 0 {
			row.SetFreedAt(e.to)
		} else {
			e.to = time.Time{}
		}
		l.rows, batch = append(l.rows, e), append(batch, row)
	}
	for part := range slices.Chunk(batch, 1000) {
		c.Allocation.CreateBulk(part...).ExecX(ctx)
	}
	return l
}

// want sums the ledger by hand.
func (l *ledger) want(slot string, from, to time.Time, of func(entry) bool) *big.Rat {
	sum := new(big.Rat)
	for _, e := range l.rows {
		end := e.to
		if end.IsZero() || end.After(to) {
			end = to
		}
		begin := e.from
		if begin.Before(from) {
			begin = from
		}
		if e.slot != slot || !of(e) || !begin.Before(end) {
			continue
		}
		part := new(big.Rat).SetFrac64(end.Sub(begin).Microseconds(), 1_000_000)
		sum.Add(sum, part.Mul(part, new(big.Rat).SetInt64(e.amount)))
	}
	for range resource.Scale(slot) {
		sum.Quo(sum, big.NewRat(10, 1))
	}
	return sum
}

// sums adds the rows of a report by slot.
func sums(t *testing.T, rows []stats.UsageRow) map[string]*big.Rat {
	out := map[string]*big.Rat{}
	for _, r := range rows {
		n, ok := new(big.Rat).SetString(r.SlotSeconds)
		if !ok {
			t.Fatalf("%q is not a number", r.SlotSeconds)
		}
		if out[r.Slot] == nil {
			out[r.Slot] = new(big.Rat)
		}
		out[r.Slot].Add(out[r.Slot], n)
	}
	return out
}

// Every grouping of every range has exactly the same sum: that of the ledger.
func TestEveryGroupingHasTheSameSum(t *testing.T) {
	l := newLedger(t, 3000)
	berlin := "Europe/Berlin"
	all := []stats.UsageDimension{
		stats.BySlot, stats.ByUser, stats.ByProject, stats.ByDomain, stats.ByResourceGroup, stats.ByAgent, stats.ByDevice, stats.ByImage,
		stats.BySessionType, stats.BySessionID, stats.ByDeployment,
	}
	times := []stats.UsageDimension{"", stats.ByHour, stats.ByDay, stats.ByWeek, stats.ByMonth}
	for i := range 60 {
		from := l.begin.Add(time.Duration(l.random.Int64N(int64(6 * 24 * time.Hour))))
		to := from.Add(time.Duration(1 + l.random.Int64N(int64(6*24*time.Hour)))).Truncate(time.Microsecond)
		in := stats.UsageReportInput{From: from, To: &to}
		for _, d := range all {
			if l.random.IntN(4) == 0 {
				in.By = append(in.By, d)
			}
		}
		if step := times[i%len(times)]; step != "" {
			in.By, in.TimeZone = append(in.By, step), &berlin
		}
		rows, err := stats.Report(systemContext(t), l.Client, in)
		if err != nil {
			t.Fatalf("%v: %v", in.By, err)
		}
		got := sums(t, rows)
		for _, slot := range []string{"cpu", "mem", "cuda.shares"} {
			want := l.want(slot, from.Truncate(time.Microsecond), to, func(entry) bool { return true })
			if have := got[slot]; have == nil && want.Sign() != 0 || have != nil && have.Cmp(want) != 0 {
				t.Errorf("%s by %v from %s to %s: %v, want %v", slot, in.By, from, to, have, want)
			}
		}
	}
}

// Viewers get what they can see, filtered and with names.
func TestReportOfAViewer(t *testing.T) {
	l := newLedger(t, 200)
	to := l.begin.Add(20 * 24 * time.Hour)
	in := stats.UsageReportInput{From: l.begin, To: &to, By: []stats.UsageDimension{stats.ByUser, stats.ByMonth}}
	rows, err := stats.Report(l.As(t, l.A.Member), l.Client, in)
	if err != nil || len(rows) != 6 { // three slots, March and April
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for _, r := range rows {
		if r.Keys[0].Label != "member-a@example.org" || r.Keys[1].Label != "2026-03" && r.Keys[1].Label != "2026-04" {
			t.Errorf("%+v", r)
		}
	}
	own := func(e entry) bool { return e.owner == l.A.Member.ID }
	if got := sums(t, rows)["cpu"]; got.Cmp(l.want("cpu", l.begin, to, own)) != 0 {
		t.Errorf("sum %v", got)
	}
	in.User = &l.B.Member.ID
	if rows, err := stats.Report(l.As(t, l.A.Member), l.Client, in); err != nil || len(rows) != 0 {
		t.Errorf("usage of a stranger: %v, %v", rows, err)
	}
	in.User = &l.A.Lead.ID
	if rows, err := stats.Report(l.As(t, l.A.Admin), l.Client, in); err != nil || len(rows) == 0 {
		t.Errorf("the admin of the domain sees no usage of a user: %v", err)
	}
}

// Days have 23 hours where clocks go forward.
func TestStepsOfTime(t *testing.T) {
	l := newLedger(t, 3000)
	berlin := "Europe/Berlin"
	from, to := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
	ctx := systemContext(t)
	rows, err := stats.Report(ctx, l.Client, stats.UsageReportInput{From: from, To: &to, TimeZone: &berlin, By: []stats.UsageDimension{stats.ByDay}})
	if err != nil {
		t.Fatal(err)
	}
	sunday := time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC) // midnight in Berlin
	for _, r := range rows {
		if r.Slot != "cpu" || r.Keys[0].Label != "2026-03-29" {
			continue
		}
		want := l.want("cpu", sunday, sunday.Add(23*time.Hour), func(entry) bool { return true })
		if got, _ := new(big.Rat).SetString(r.SlotSeconds); r.Keys[0].Value != "2026-03-28T23:00:00Z" || got.Cmp(want) != 0 {
			t.Errorf("the Sunday of 23 hours: %+v, want %v", r, want)
		}
	}
	for name, change := range map[string]func(*stats.UsageReportInput){
		"from": func(in *stats.UsageReportInput) { in.From = to },
		"by": func(in *stats.UsageReportInput) {
			in.From, in.By = from.AddDate(-1, 0, 0), []stats.UsageDimension{stats.ByHour}
		},
		"timeZone": func(in *stats.UsageReportInput) { zone := "Mars/Olympus"; in.TimeZone = &zone },
	} {
		in := stats.UsageReportInput{From: from, To: &to, TimeZone: &berlin}
		change(&in)
		if _, err := stats.Report(ctx, l.Client, in); fieldOf(err) != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, by := range [][]stats.UsageDimension{{stats.ByDay, stats.ByMonth}, {stats.ByUser, stats.ByUser}} {
		if _, err := stats.Report(ctx, l.Client, stats.UsageReportInput{From: from, To: &to, By: by}); fieldOf(err) != "by" {
			t.Errorf("%v: %v", by, err)
		}
	}
}

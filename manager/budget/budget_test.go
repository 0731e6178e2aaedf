package budget_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entbudget "github.com/berthhq/berth/ent/budget"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/budget"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
)

func ptr[T any](v T) *T { return &v }

func fieldOf(err error) string {
	p, _ := problem.From(err)
	return p.Field
}

// world has a price of 1 for a core and hour, and a machine.
type world struct {
	*identitytest.World
	t      *testing.T
	svc    *budget.Service
	group  *ent.ResourceGroup
	node   *ent.Agent
	device *ent.Device
	image  *ent.Image
	seen   *notices
}

// notices are the limits that were reported.
type notices struct {
	mu   sync.Mutex
	list []budget.Reached
}

func (n *notices) BudgetReached(_ context.Context, r budget.Reached) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, r)
}

func newWorld(t *testing.T) *world {
	t.Parallel()
	w := &world{World: identitytest.New(t), t: t, seen: &notices{}}
	w.svc = w.service()
	ctx, c := w.system(), w.Client
	w.group = c.ResourceGroup.Create().SetName("g").SaveX(ctx)
	w.node = c.Agent.Create().SetName("n").SetResourceGroup(w.group).SaveX(ctx)
	w.device = c.Device.Create().SetAgent(w.node).SetDeviceID("cpu").SetPlugin("cpu").SetCapacity(resource.Slots{}).SaveX(ctx)
	reg := c.Registry.Create().SetName("r").SetHost("r.test").SaveX(ctx)
	w.image = c.Image.Create().SetReference("r.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(ctx)
	c.Price.Create().SetKind("slot_hour").SetSlot("cpu").SetMicros(1_000_000).SetValidFrom(time.Now().AddDate(-1, 0, 0)).ExecX(ctx)
	return w
}

func (w *world) service() *budget.Service {
	return budget.New(budget.Config{Client: w.Client, Observer: w.seen, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

func (w *world) system() context.Context { return viewer.SystemContext(w.t.Context()) }

// ask is a request for cores for a time, which is not known if it is 0.
func (w *world) ask(cores int64, lifetime time.Duration) budget.Ask {
	a := budget.Ask{Place: policy.Place{Domain: w.A.ID, Project: w.A.Project.ID, User: w.A.Member.ID, Group: w.group.ID},
		Slots: resource.Slots{"cpu": cores * 1000}, Sessions: 1, Member: true}
	if lifetime > 0 {
		a.Lifetime = ptr(int(lifetime / time.Second))
	}
	return a
}

// start stores a session as package session does: in the transaction that admits it.
func (w *world) start(a budget.Ask) (*ent.Session, error) {
	ctx := w.system()
	ids, err := w.svc.Binding(ctx, a.Place)
	if err != nil {
		return nil, err
	}
	var s *ent.Session
	err = store.InTx(ctx, w.Client, func(tx *ent.Tx) error {
		if err := w.svc.Admit(ctx, tx, ids, a); err != nil {
			return err
		}
		s = w.insert(tx.Client(), a)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.Unwrap(), nil
}

func (w *world) insert(c *ent.Client, a budget.Ask) *ent.Session {
	ctx := w.system()
	s := c.Session.Create().SetName(uuid.NewString()).SetType("batch").SetSlots(a.Slots).SetNillableLifetime(a.Lifetime).
		SetDomainID(a.Domain).SetProjectID(a.Project).SetOwnerID(a.User).SetResourceGroupID(a.Group).SetImage(w.image).SaveX(ctx)
	c.Kernel.Create().SetSession(s).SetSlots(a.Slots).SetDomainID(a.Domain).SetProjectID(a.Project).SetOwnerID(a.User).ExecX(ctx)
	return s
}

// spend charges cores for a time that ends now.
func (w *world) spend(cores int64, during time.Duration) {
	ctx, a := w.system(), w.ask(cores, 0)
	s := w.insert(w.Client, a)
	s.Update().SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).ExecX(ctx)
	k := s.QueryKernels().OnlyX(ctx)
	k.Update().SetTerminatedAt(time.Now()).ExecX(ctx)
	now := time.Now()
	w.Client.Allocation.Create().SetSlot("cpu").SetAmount(cores * 1000).SetCreatedAt(now.Add(-during)).SetFreedAt(now).SetSessionID(s.ID).SetKernel(k).
		SetAgentID(w.node.ID).SetDevice(w.device).SetDomainID(a.Domain).SetProjectID(a.Project).SetOwnerID(a.User).ExecX(ctx)
}

// budget sets a budget that began a month ago.
func (w *world) budget(in budget.SetBudgetInput) *ent.Budget {
	w.t.Helper()
	total := entbudget.PeriodTotal
	in.Period, in.StartsAt = &total, ptr(time.Now().AddDate(0, -1, 0))
	out, err := w.svc.SetBudget(w.As(w.t, w.Superadmin), in)
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Budget
}

// Requests at the same time are counted one after the other, so the sum never exceeds the budget.
func TestConcurrentRequestsNeverOvershoot(t *testing.T) {
	w := newWorld(t)
	w.budget(budget.SetBudgetInput{Project: &w.A.Project.ID, Hard: ptr("10")})
	w.budget(budget.SetBudgetInput{User: &w.A.Member.ID, Hard: ptr("100")})
	var admitted atomic.Int64
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			_, err := w.start(w.ask(1, time.Hour))
			switch {
			case err == nil:
				admitted.Add(1)
			case !errdefs.IsResourceExhausted(err):
				t.Errorf("a request failed: %v", err)
			}
		})
	}
	wait.Wait()
	if n := admitted.Load(); n != 10 {
		t.Errorf("%d sessions of 1 credit were admitted by a budget of 10", n)
	}
}

func TestRefusal(t *testing.T) {
	w := newWorld(t)
	b := w.budget(budget.SetBudgetInput{User: &w.A.Member.ID, Hard: ptr("10")})
	w.spend(2, 2*time.Hour) // 4
	if _, err := w.start(w.ask(1, 5*time.Hour)); err != nil {
		t.Fatalf("9 of 10: %v", err)
	}
	_, err := w.start(w.ask(2, time.Hour))
	if !errdefs.IsResourceExhausted(err) || fieldOf(err) != "slots" {
		t.Fatalf("11 of 10: %v", err)
	}
	for _, number := range []string{"allows 10 credits", "4 is spent", "5 promised", "costs 2"} {
		if !strings.Contains(err.Error(), number) {
			t.Errorf("%q does not say %q", err, number)
		}
	}
	if _, err := w.start(w.ask(1, 0)); err != nil {
		t.Errorf("without a lifetime, only the spent and promised part counts: %v", err)
	}
	array := w.ask(1, 30*time.Minute)
	array.Sessions = 3
	if _, err := w.start(array); !errdefs.IsResourceExhausted(err) {
		t.Errorf("an array of 1.5: %v", err)
	}
	free := w.ask(0, time.Hour)
	free.Slots = resource.Slots{"mem": 1 << 40} // has no price
	w.spend(10, time.Hour)
	if _, err := w.start(free); err != nil {
		t.Errorf("a session that costs nothing: %v", err)
	}
	if _, err := w.start(w.ask(1, 0)); !errdefs.IsResourceExhausted(err) {
		t.Errorf("a budget that is used up admits a session without a lifetime: %v", err)
	}
	// The other member of the project has no budget.
	other := w.ask(1, time.Hour)
	other.User = w.A.Lead.ID
	if _, err := w.start(other); err != nil {
		t.Error(err)
	}
	if _, err := w.svc.SetBudget(w.As(t, w.Superadmin), budget.SetBudgetInput{ID: &b.ID, Hard: ptr("1000")}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.start(w.ask(1, time.Hour)); err != nil {
		t.Errorf("after the limit was raised: %v", err)
	}
}

// Refusals of a budget that the owner cannot see contain no numbers.
func TestRefusalWithoutNumbers(t *testing.T) {
	w := newWorld(t)
	w.budget(budget.SetBudgetInput{Domain: &w.A.ID, Hard: ptr("7")})
	w.spend(8, time.Hour)
	if _, err := w.start(w.ask(1, 0)); !errdefs.IsResourceExhausted(err) || strings.ContainsAny(err.Error(), "0123456789") {
		t.Errorf("%v", err)
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	b := w.budget(budget.SetBudgetInput{User: &w.A.Member.ID, Soft: ptr("30"), Hard: ptr("100")})
	w.spend(7, 2*time.Hour) // 14 in 7 days: 2 a day
	if _, err := w.start(w.ask(1, 3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	s, err := w.svc.Status(w.As(t, w.A.Member), b)
	if err != nil || s.Spent != "14" || s.Promised != "3" || s.PerDay != "2" {
		t.Fatalf("%+v, %v", s, err)
	}
	days := func(at *time.Time) string {
		return fmt.Sprint(int(time.Until(*at).Round(24*time.Hour) / (24 * time.Hour)))
	}
	if s.SoftReachedAt == nil || days(s.SoftReachedAt) != "8" || s.HardReachedAt == nil || days(s.HardReachedAt) != "43" {
		t.Errorf("soft %v, hard %v", s.SoftReachedAt, s.HardReachedAt)
	}
}

// A limit is reported once in a period, by whichever manager leads, and sessions are ended if the budget says so.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	keep := w.budget(budget.SetBudgetInput{User: &w.A.Member.ID, Soft: ptr("3"), Hard: ptr("5")})
	end := w.budget(budget.SetBudgetInput{Project: &w.A.Project.ID, Hard: ptr("6"), AtHard: ptr(entbudget.AtHardTerminate)})
	ended := &enders{}
	watch := func() {
		t.Helper()
		if err := w.service().Watch(w.system(), 1, ended); err != nil { // a new service: nothing is in memory
			t.Fatal(err)
		}
	}
	watch()
	w.spend(4, time.Hour)
	watch()
	watch()
	w.spend(3, time.Hour)
	watch()
	watch()
	var got []string
	for _, r := range w.seen.list {
		which := map[uuid.UUID]string{keep.ID: "user", end.ID: "project"}[r.Budget.ID]
		got = append(got, which+" "+r.Limit+" "+r.Amount+" "+r.Spent)
	}
	if fmt.Sprint(got) != "[user soft 3 4 user hard 5 7 project hard 6 7]" {
		t.Errorf("%v", got)
	}
	if len(ended.of) != 2 || ended.of[0] != w.A.Project.ID || !ended.costs || !strings.Contains(ended.why, "7 of 6 credits") {
		t.Errorf("%+v", ended)
	}
}

// enders notes whose sessions are ended.
type enders struct {
	of    []uuid.UUID
	costs bool
	why   string
}

func (e *enders) EndOverBudget(_ context.Context, _ int64, _ policy.Scope, one uuid.UUID, costs func(uuid.UUID, resource.Slots) bool, why string) (int, error) {
	e.of, e.why = append(e.of, one), why
	e.costs = costs(uuid.New(), resource.Slots{"cpu": 1}) && !costs(uuid.New(), resource.Slots{"mem": 1})
	return 1, nil
}

// Inputs are checked, and administrators of a domain can set the budgets of its projects and users alone.
func TestSetBudget(t *testing.T) {
	w := newWorld(t)
	super := w.As(t, w.Superadmin)
	for field, in := range map[string]budget.SetBudgetInput{
		"input":    {Hard: ptr("1")},
		"hard":     {User: &w.A.Member.ID},
		"soft":     {User: &w.A.Member.ID, Soft: ptr("2"), Hard: ptr("1")},
		"timeZone": {User: &w.A.Member.ID, Hard: ptr("1"), TimeZone: ptr("Mars/Olympus")},
		"endsAt":   {User: &w.A.Member.ID, Hard: ptr("1"), EndsAt: ptr(time.Now().Add(time.Hour))},
		"user":     {User: ptr(uuid.New()), Hard: ptr("1")},
	} {
		if _, err := w.svc.SetBudget(super, in); fieldOf(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, one := range []struct {
		who *ent.User
		in  budget.SetBudgetInput
		ok  bool
	}{
		{w.A.Member, budget.SetBudgetInput{User: &w.A.Member.ID, Hard: ptr("1")}, false},
		{w.A.Lead, budget.SetBudgetInput{Project: &w.A.Project.ID, Hard: ptr("1")}, false},
		{w.A.Admin, budget.SetBudgetInput{Project: &w.A.Project.ID, Hard: ptr("1")}, true},
		{w.A.Admin, budget.SetBudgetInput{Domain: &w.A.ID, Hard: ptr("1")}, false},
		{w.A.Admin, budget.SetBudgetInput{User: &w.B.Member.ID, Hard: ptr("1")}, false},
	} {
		if _, err := w.svc.SetBudget(w.As(t, one.who), one.in); (err == nil) != one.ok {
			t.Errorf("%s: %v", one.who.Email, err)
		}
	}
	for who, want := range map[*ent.User]int{w.A.Member: 1, w.A.Admin: 1, w.B.Member: 0} {
		if list, err := w.svc.List(w.As(t, who), nil, nil, nil, false); err != nil || len(list) != want {
			t.Errorf("%s sees %d budgets: %v", who.Email, len(list), err)
		}
	}
}

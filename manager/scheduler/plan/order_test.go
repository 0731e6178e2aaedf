package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// pool is a group with one agent on which all slots can be combined, so that only the amounts
// decide whether requests fit.
func pool(id uuid.UUID, order plan.Order, capacity resource.Slots) (plan.Group, plan.Agent) {
	a := plan.Agent{ID: uuid.NewSHA1(id, []byte("agent")), Name: "pool", Group: id, Schedulable: true, Architecture: "amd64"}
	for _, name := range capacity.Names() {
		a.Devices = append(a.Devices, plan.Device{
			ID: uuid.NewSHA1(id, []byte(name)), Allocatable: true, Healthy: true,
			Capacity: resource.Slots{name: capacity[name]},
		})
	}
	return plan.Group{ID: id, Name: "pool", HoldAfter: -1, Order: order, Strategy: plan.StrategyConcentrated}, a
}

// queueOf has one pool. Requests are written "user" or "user!" (with priority), the oldest first.
// All requests of a user have the same amounts.
func queueOf(order plan.Order, capacity resource.Slots, asks map[string]resource.Slots, users ...string) *plan.Snapshot {
	g, a := pool(idOf("group"), order, capacity)
	s := &plan.Snapshot{Now: noon, Groups: []plan.Group{g}, Agents: []plan.Agent{a}}
	for i, user := range users {
		name, urgent := strings.CutSuffix(user, "!")
		r := plan.Request{
			SessionID: idOf(fmt.Sprintf("%s%d", name, i)), Owner: idOf(name), Project: idOf("p" + name[:1]), Domain: idOf("d"),
			Group: g.ID, Created: noon.Add(time.Duration(i-100) * time.Second),
			Kernels: []plan.KernelRequest{{ID: idOf(fmt.Sprintf("k%d", i)), Slots: asks[name]}},
		}
		if urgent {
			r.Priority = 1
		}
		s.Pending = append(s.Pending, r)
	}
	return s
}

// sequence lists the decided sessions in order, with the waiting ones in brackets.
func sequence(decisions []plan.Decision) string {
	var list []string
	for _, d := range decisions {
		name := nameOf(d.SessionID)
		if !d.Placed() {
			name = "(" + name + ")"
		}
		list = append(list, name)
	}
	return strings.Join(list, " ")
}

func TestOrders(t *testing.T) {
	one := map[string]resource.Slots{"a": {"cpu": 1000}, "b": {"cpu": 1000}, "c": {"cpu": 1000}}
	// The example of the DRF paper, section 4.1: 9 cpu, 18 memory.
	paper := map[string]resource.Slots{"a": {"cpu": 1000, "mem": 4}, "b": {"cpu": 3000, "mem": 1}}
	for name, c := range map[string]struct {
		s    *plan.Snapshot
		want string
	}{
		"the default is fifo": {queueOf("", resource.Slots{"cpu": 3000}, one, "a", "a", "b!", "b"), "b2 a0 a1 (b3)"},
		"fifo":                {queueOf(plan.OrderFIFO, resource.Slots{"cpu": 3000}, one, "a", "a", "b!", "b"), "b2 a0 a1 (b3)"},
		"lifo":                {queueOf(plan.OrderLIFO, resource.Slots{"cpu": 3000}, one, "a", "a!", "b!", "b"), "b2 a1 b3 (a0)"},
		"drf": {
			queueOf(plan.OrderDRF, resource.Slots{"cpu": 9000, "mem": 18}, paper, "a", "a", "a", "a", "b", "b", "b"),
			"a0 b4 a1 b5 a2 (a3) (b6)",
		},
		"drf by priority": {
			queueOf(plan.OrderDRF, resource.Slots{"cpu": 4000}, one, "a", "b", "a!", "a!", "b"),
			"a2 a3 b1 b4 (a0)",
		},
		"drf with allocations": {
			func() *plan.Snapshot {
				s := queueOf(plan.OrderDRF, resource.Slots{"cpu": 4000}, one, "a", "a", "b", "b")
				s.Holdings = []plan.Holding{
					{Group: idOf("group"), Domain: idOf("d"), Project: idOf("other"), Owner: idOf("a"), Slots: resource.Slots{"cpu": 2000}},
					{Group: idOf("elsewhere"), Domain: idOf("d"), Project: idOf("pb"), Owner: idOf("b"), Slots: resource.Slots{"cpu": 9000}},
				}
				return s
			}(), "b2 b3 a0 a1",
		},
		"drf with weights": {
			func() *plan.Snapshot {
				s := queueOf(plan.OrderDRF, resource.Slots{"cpu": 4000}, one, "a", "a", "a", "b", "b", "b")
				s.Shares = []plan.Share{{Group: idOf("group"), Scope: plan.ScopeUser, ID: idOf("b"), Weight: 3, Usage: 1}}
				return s
			}(), "a0 b3 b4 b5 (a1) (a2)",
		},
		"fair share": {
			func() *plan.Snapshot {
				s := queueOf(plan.OrderFairShare, resource.Slots{"cpu": 2000}, one, "a", "a", "b", "c")
				s.Shares = []plan.Share{
					{Group: idOf("group"), Scope: plan.ScopeProject, ID: idOf("pa"), Usage: 0.2},
					{Group: idOf("group"), Scope: plan.ScopeProject, ID: idOf("pb"), Usage: 0.5, Weight: 5},
					{Group: idOf("elsewhere"), Scope: plan.ScopeProject, ID: idOf("pc"), Usage: 1},
				}
				return s
			}(), "c3 b2 (a0) (a1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			decisions := plan.Plan(c.s)
			replay(t, c.s, decisions)
			if diff := cmp.Diff(c.want, sequence(decisions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStandingIsReported(t *testing.T) {
	s := queueOf(plan.OrderFairShare, resource.Slots{"cpu": 1000}, map[string]resource.Slots{"a": {"cpu": 2000}}, "a")
	s.Groups[0].Sharing.Ahead = s.Groups[0].Sharing.HalfLife
	s.Shares = []plan.Share{
		{Group: idOf("group"), Scope: plan.ScopeDomain, ID: idOf("d"), Usage: 0.5},
		{Group: idOf("group"), Scope: plan.ScopeProject, ID: idOf("pa"), Usage: 0.5, Weight: 0.5},
		{Group: idOf("group"), Scope: plan.ScopeUser, ID: idOf("a"), Usage: 0.9, Weight: 2},
		{Group: idOf("group"), Scope: plan.ScopeUser, ID: idOf("a"), Within: idOf("pa"), Usage: 0.25},
	}
	want := &report.Ordering{Order: "fair_share", Levels: []report.Standing{
		{Scope: "domain", Usage: 0.5, Weight: 1, Factor: 0.707},
		{Scope: "project", Usage: 0.5, Weight: 0.5, Factor: 0.5},
		{Scope: "user", Usage: 0.25, Weight: 2, Factor: 0.917},
	}}
	if diff := cmp.Diff(want, plan.Plan(s)[0].Waiting.Order); diff != "" {
		t.Error(diff)
	}
	s.Groups[0].Order = plan.OrderLIFO
	if diff := cmp.Diff(&report.Ordering{Order: "lifo"}, plan.Plan(s)[0].Waiting.Order); diff != "" {
		t.Error(diff)
	}
	s.Groups[0].Order = plan.OrderFIFO
	if got := plan.Plan(s)[0].Waiting.Order; got != nil {
		t.Errorf("fifo: %+v", got)
	}
}

// cases runs f on n random worlds, or on a tenth of them in short mode.
func cases(t *testing.T, n uint64, f func(t *testing.T, w *world)) {
	t.Helper()
	if testing.Short() {
		n /= 10
	}
	for seed := range n {
		f(t, newWorld(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestOrderIsTheRule compares each decision with a fresh computation of the rule.
func TestOrderIsTheRule(t *testing.T) {
	placed, waiting := 0, 0
	cases(t, 30_000, func(t *testing.T, w *world) {
		s := w.queues()
		decisions := plan.Plan(s)
		m := newRule(s)
		for i := range decisions {
			if next := m.next(); !slices.Contains(next, decisions[i].SessionID) {
				t.Errorf("decision %d of %d is on %s, want one of %s", i, len(decisions), decisions[i].SessionID, next)
				return
			}
			m.decided(&decisions[i])
			if decisions[i].Placed() {
				placed++
			} else {
				waiting++
			}
		}
		if len(m.left) > 0 {
			t.Errorf("%d requests without a decision", len(m.left))
		}
		w.Shuffle(len(s.Pending), func(i, j int) { s.Pending[i], s.Pending[j] = s.Pending[j], s.Pending[i] })
		w.Shuffle(len(s.Groups), func(i, j int) { s.Groups[i], s.Groups[j] = s.Groups[j], s.Groups[i] })
		w.Shuffle(len(s.Holdings), func(i, j int) { s.Holdings[i], s.Holdings[j] = s.Holdings[j], s.Holdings[i] })
		w.Shuffle(len(s.Shares), func(i, j int) { s.Shares[i], s.Shares[j] = s.Shares[j], s.Shares[i] })
		again := plan.Plan(s)
		if got, want := fmt.Sprint(sessions(again)), fmt.Sprint(sessions(decisions)); got != want {
			t.Errorf("shuffled: %s, want %s", got, want)
		}
	})
	if placed == 0 || waiting == 0 {
		t.Errorf("%d placed, %d waiting: the queues are too simple", placed, waiting)
	}
}

func sessions(decisions []plan.Decision) []uuid.UUID {
	list := make([]uuid.UUID, len(decisions))
	for i := range decisions {
		list[i] = decisions[i].SessionID
	}
	return list
}

// queues is one or two pools with random orders, and usage at every level.
func (w *world) queues() *plan.Snapshot {
	s := &plan.Snapshot{Now: noon}
	scopes := []string{plan.ScopeDomain, plan.ScopeProject, plan.ScopeUser}
	var ids []uuid.UUID
	for range 3 + w.IntN(4) {
		ids = append(ids, w.id())
	}
	for range 1 + w.IntN(2) {
		g, a := pool(w.id(), pick(w, plan.OrderFIFO, plan.OrderLIFO, plan.OrderDRF, plan.OrderDRF, plan.OrderFairShare, plan.OrderFairShare),
			resource.Slots{"cpu": 1000 * (1 + w.Int64N(30)), "mem": 1 + w.Int64N(30)})
		g.Sharing.Levels = pick(w, nil, nil, scopes, scopes[:1], scopes[1:])
		s.Groups, s.Agents = append(s.Groups, g), append(s.Agents, a)
		for range w.IntN(4) {
			s.Holdings = append(s.Holdings, plan.Holding{
				Group: g.ID, Domain: pick(w, ids...), Project: pick(w, ids...), Owner: pick(w, ids...),
				Slots: resource.Slots{"cpu": 1000 * w.Int64N(5), "mem": w.Int64N(5)},
			})
		}
		for range w.IntN(6) {
			s.Shares = append(s.Shares, plan.Share{
				Group: g.ID, Scope: pick(w, scopes...), ID: pick(w, ids...), Within: pick(w, uuid.Nil, pick(w, ids...)),
				Weight: pick(w, 0, 0.5, 2, 10), Usage: pick(w, 0, 0.001, w.Float64()),
			})
		}
	}
	for range w.IntN(12) {
		s.Pending = append(s.Pending, plan.Request{
			SessionID: w.id(), Group: pick(w, s.Groups...).ID,
			Domain: pick(w, ids...), Project: pick(w, ids...), Owner: pick(w, ids...),
			Priority: w.IntN(2), Created: noon.Add(-time.Duration(w.IntN(10)) * time.Second),
			Kernels: []plan.KernelRequest{{ID: w.id(), Slots: resource.Slots{"cpu": 1000 * w.Int64N(8), "mem": 1 + w.Int64N(8)}}},
		})
	}
	return s
}

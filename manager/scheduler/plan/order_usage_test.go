package plan_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-15+1e-9*max(math.Abs(a), math.Abs(b)) }

// TestDecay tests the usage of a user who used the whole cluster for a while.
func TestDecay(t *testing.T) {
	const day = 24 * time.Hour
	g := &plan.Group{ID: idOf("group"), Order: plan.OrderFairShare, Sharing: plan.Sharing{
		Levels: []string{plan.ScopeUser}, HalfLife: 2 * day, Lookback: 6 * day,
	}}
	capacity := resource.Slots{"cpu": 4000, "mem": 64}
	for name, c := range map[string]struct {
		from, to time.Duration // before now
		slots    resource.Slots
		want     float64
	}{
		"everything, always":           {6 * day, 0, capacity, 1},
		"and before that":              {60 * day, 0, capacity, 1},
		"half of one slot":             {6 * day, 0, resource.Slots{"cpu": 2000, "mem": 1}, 0.5},
		"a slot that no longer exists": {6 * day, 0, resource.Slots{"cuda.device": 4}, 0},
		"the last half-life":           {2 * day, 0, capacity, 4. / 7},
		"the one before":               {4 * day, 2 * day, capacity, 2. / 7},
		"the one before that":          {6 * day, 4 * day, capacity, 1. / 7},
		"usage too long ago":           {9 * day, 6 * day, capacity, 0},
		"partly too long ago":          {8 * day, 4 * day, capacity, 1. / 7},
		"usage in the future":          {0, -day, capacity, 0},
		"a record without duration":    {day, day, capacity, 0},
	} {
		t.Run(name, func(t *testing.T) {
			u := usage(idOf("a"), noon.Add(-c.from), noon.Add(-c.to), c.slots)
			got := 0.0
			for _, sh := range plan.Decay([]plan.Usage{u}, g, capacity, noon) {
				if sh.Group != g.ID || sh.Scope != plan.ScopeUser || sh.ID != idOf("a") {
					t.Errorf("odd share %+v", sh)
				}
				got += sh.Usage
			}
			if !near(got, c.want) {
				t.Errorf("usage %g, want %g", got, c.want)
			}
		})
	}
}

func usage(owner uuid.UUID, from, to time.Time, slots resource.Slots) plan.Usage {
	u := plan.Usage{Group: idOf("group"), Domain: idOf("d"), Project: idOf("p"), Owner: owner, From: from, To: to, Seconds: map[string]float64{}}
	for name, amount := range slots {
		u.Seconds[name] = float64(amount) * to.Sub(from).Seconds()
	}
	return u
}

// TestUsageAddsUp checks properties that hold for every division of usage into records.
func TestUsageAddsUp(t *testing.T) {
	cases(t, 20_000, func(t *testing.T, w *world) {
		hours := func(n int) time.Duration { return time.Duration(w.IntN(n*3600)) * time.Second }
		g := &plan.Group{ID: idOf("group"), Order: plan.OrderFairShare}
		g.Sharing.HalfLife, g.Sharing.Lookback = time.Hour+hours(100), time.Hour+hours(300)
		capacity := resource.Slots{"cpu": 8000, "mem": 64}
		var records []plan.Usage
		for range 1 + w.IntN(5) {
			from := noon.Add(-hours(400))
			u := usage(pick(w, idOf("a"), idOf("b")), from, from.Add(time.Second+hours(50)), resource.Slots{"cpu": w.Int64N(8000), "mem": w.Int64N(64)})
			u.Project = pick(w, idOf("p"), idOf("q"))
			records = append(records, u)
		}
		whole := plan.Decay(records, g, capacity, noon)

		var cut []plan.Usage
		for _, u := range records {
			first, second := u, u
			part := w.Float64()
			first.To = u.From.Add(time.Duration(part * float64(u.To.Sub(u.From))))
			part = float64(first.To.Sub(u.From)) / float64(u.To.Sub(u.From))
			second.From = first.To
			first.Seconds, second.Seconds = map[string]float64{}, map[string]float64{}
			for name, n := range u.Seconds {
				first.Seconds[name], second.Seconds[name] = part*n, (1-part)*n
			}
			cut = append(cut, first, second)
		}
		w.Shuffle(len(cut), func(i, j int) { cut[i], cut[j] = cut[j], cut[i] })
		parts := plan.Decay(cut, g, capacity, noon)
		if !slices.EqualFunc(whole, parts, func(a, b plan.Share) bool {
			ok := near(a.Usage, b.Usage)
			a.Usage, b.Usage = 0, 0
			return ok && a == b
		}) {
			t.Errorf("in pieces %+v, want %+v", parts, whole)
		}

		sums, most := map[uuid.UUID]float64{}, map[uuid.UUID]float64{}
		for _, sh := range whole {
			sums[sh.Within] += sh.Usage
			most[sh.Within] = max(most[sh.Within], sh.Usage)
		}
		for _, sh := range whole {
			if sh.Scope != plan.ScopeUser && (sh.Usage > sums[sh.ID]+1e-9 || sh.Usage < most[sh.ID]-1e-9) {
				t.Errorf("%s %s used %g, those below %g together and %g at most", sh.Scope, nameOf(sh.ID), sh.Usage, sums[sh.ID], most[sh.ID])
			}
		}

		// Within the lookback, a half-life later all usage counts half.
		g.Sharing.Lookback = 1000 * time.Hour
		for i, sh := range plan.Decay(records, g, capacity, noon.Add(50*time.Hour)) {
			later := plan.Decay(records, g, capacity, noon.Add(50*time.Hour+g.Sharing.HalfLife))[i]
			if !near(later.Usage, sh.Usage/2) {
				t.Errorf("%g after a half-life, want half of %g", later.Usage, sh.Usage)
			}
		}
	})
}

// TestNobodyStarvesUnderFairShare runs a full cluster for days. All users always request more.
//
// The bound: let i have nothing, h be the half-life and L the lookback, which is
// long; sessions last at most T, all are of one size, and W is the sum of all
// weights. After a time t the usage of i is at most 2^(-t/h). The cluster being
// full, the others used at least 1-2^(-t/h). Each of them was preferred to i
// when its last session began, not before t-T, so that its usage by weight was
// at most that of i then, and all together used not more than e = T/(window)
// since. So i is served, when the next session ends, after the first t with
//
//	1 - 2^(-t/h) > (W-w_i)/w_i * 2^(-(t-T)/h) + e
func TestNobodyStarvesUnderFairShare(t *testing.T) {
	const tick, life, back, longest = 15 * time.Minute, 12 * time.Hour, 48 * time.Hour, time.Hour
	served := 0
	var worst time.Duration
	cases(t, 100, func(t *testing.T, w *world) {
		sim := w.cluster(life, back)
		for range int(3 * 24 * time.Hour / tick) {
			sim.step(w, tick, longest)
			for _, u := range sim.users {
				r := (sim.weights - u.weight) / u.weight
				e := longest.Hours() * math.Ln2 / life.Hours() / (1 - math.Exp2(-back.Hours()/life.Hours()))
				bound := life.Hours() * math.Log2((1+r*math.Exp2(longest.Hours()/life.Hours()))/(1-e))
				bound = min(bound, back.Hours()) + (longest + 2*tick).Hours()
				wait := sim.now.Sub(u.last)
				worst = max(worst, wait)
				if wait.Hours() > bound {
					t.Fatalf("%s of weight %g (all: %g) waits for %s, longer than %.1f h", nameOf(u.id), u.weight, sim.weights, wait, bound)
				}
			}
		}
		for _, u := range sim.users {
			served += u.served
			if u.served == 0 {
				t.Errorf("%s was never served", nameOf(u.id))
			}
		}
	})
	t.Logf("%d sessions, the longest wait was %s", served, worst)
	if worst < longest {
		t.Errorf("no session waited for more than %s: the cases are too simple", worst)
	}
}

// fullCluster is a pool of equal places, and its users.
type fullCluster struct {
	now     time.Time
	s       plan.Snapshot
	places  int
	users   []*hungry
	weights float64
	running []run
	history []plan.Usage
	count   int
}

type hungry struct {
	id     uuid.UUID
	weight float64
	last   time.Time // time at which the user last had an allocation
	served int
}

type run struct {
	user *hungry
	from time.Time
	to   time.Time
}

func (w *world) cluster(life, back time.Duration) *fullCluster {
	c := &fullCluster{now: noon, places: 1 + w.IntN(4)}
	g, a := pool(idOf("group"), plan.OrderFairShare, resource.Slots{"cpu": int64(c.places)})
	g.Sharing = plan.Sharing{Levels: []string{plan.ScopeUser}, HalfLife: life, Lookback: back, Ahead: pick(w, 0, time.Minute, 3*time.Hour)}
	c.s = plan.Snapshot{Groups: []plan.Group{g}, Agents: []plan.Agent{a}}
	for i := range 2 + w.IntN(4) {
		u := &hungry{id: idOf(fmt.Sprintf("u%d", i)), weight: pick(w, 0.5, 1, 2, 4), last: noon}
		c.users = append(c.users, u)
		c.weights += u.weight
	}
	// Before, one of them used more or less of the cluster than the others.
	full := usage(c.users[0].id, noon.Add(-back), noon, resource.Slots{"cpu": w.Int64N(int64(c.places + 1))})
	c.history = append(c.history, full)
	return c
}

// step ends sessions, gives every user enough requests, and plans.
func (c *fullCluster) step(w *world, tick, longest time.Duration) {
	c.now = c.now.Add(tick)
	one := resource.Slots{"cpu": 1}
	var live []plan.Usage
	var still []run
	g := &c.s.Groups[0]
	c.s.Now, c.s.Pending, c.s.Holdings = c.now, nil, nil
	for _, r := range c.running {
		r.user.last = c.now
		if !r.to.After(c.now) {
			c.history = append(c.history, usage(r.user.id, r.from, r.to, one))
			continue
		}
		still = append(still, r)
		live = append(live, usage(r.user.id, r.from, c.now, one))
		c.s.Holdings = append(c.s.Holdings, plan.Holding{Group: g.ID, Owner: r.user.id, Slots: one})
	}
	c.running = still
	c.s.Shares = plan.Decay(slices.Concat(c.history, live), g, plan.Capacity(&c.s, g.ID), c.now)
	for _, u := range c.users {
		c.s.Shares = append(c.s.Shares, plan.Share{Group: g.ID, Scope: plan.ScopeUser, ID: u.id, Weight: u.weight})
		for range c.places {
			c.count++
			name := fmt.Sprintf("s%d", c.count)
			c.s.Pending = append(c.s.Pending, plan.Request{
				SessionID: idOf(name), Owner: u.id, Group: g.ID, Created: c.now.Add(-time.Duration(w.IntN(60)) * time.Second),
				Kernels: []plan.KernelRequest{{ID: idOf("k" + name), Slots: one}},
			})
		}
	}
	for _, d := range plan.Plan(&c.s) {
		if d.Placed() {
			id := find(&c.s, d.SessionID).Owner
			u := c.users[slices.IndexFunc(c.users, func(u *hungry) bool { return u.id == id })]
			u.served++
			u.last = c.now
			c.running = append(c.running, run{u, c.now, c.now.Add(tick * time.Duration(1+w.IntN(int(longest/tick))))})
		}
	}
}

package plan_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// tenant is a user whose requests are all equal. They always have another request.
type tenant struct {
	id      uuid.UUID
	weight  float64 // of 1 for all tenants together
	demand  resource.Slots
	task    float64 // dominant share of one request
	running int64
	waits   bool
}

// has returns the amount of a slot that a tenant uses.
func (u *tenant) has(slot string) int64 { return u.running * u.demand[slot] }

// TestDominantShares checks the properties of OrderDRF: the share guarantee, the bound on envy, and
// Pareto efficiency.
func TestDominantShares(t *testing.T) {
	guaranteed, envious := 0, 0
	cases(t, 40_000, func(t *testing.T, w *world) {
		capacity := resource.Slots{"cpu": 10 + w.Int64N(90), "mem": 10 + w.Int64N(90)}
		if w.chance(30) {
			capacity["vpu.units"] = 5 + w.Int64N(20)
		}
		tenants, s := w.tenants(capacity)
		for _, d := range plan.Plan(s) {
			u := tenants[find(s, d.SessionID).Owner]
			if d.Placed() {
				u.running++
			} else {
				u.waits = true
			}
		}
		tasks := 0.0
		for _, u := range tenants {
			tasks += u.task
		}
		for _, u := range tenants {
			if !u.waits {
				t.Fatalf("%+v ran out of requests", u)
			}
			if room(capacity, tenants, u) {
				t.Errorf("%+v waits though it has room", u)
			}
			bound := u.weight * (1 - tasks)
			if share := float64(u.running) * u.task; share <= bound-1e-9 {
				t.Errorf("%+v has the share %g, guaranteed are %g", u, share, bound)
			}
			if bound > 0 {
				guaranteed++
			}
			for _, v := range tenants {
				scale := u.weight / v.weight
				could, bound := u.with(v, scale), float64(u.running)+scale*(1+v.task/u.task)
				if could >= bound+1e-9 {
					t.Errorf("%+v could run %g with %g times the share of %+v, above %g", u, could, scale, v, bound)
				}
				if could > float64(u.running)+1e-9 {
					envious++
				}
			}
		}
	})
	if guaranteed == 0 || envious == 0 {
		t.Errorf("%d shares guaranteed, %d times envy within the bound: the cases are too simple", guaranteed, envious)
	}
}

// with returns the number of requests that a tenant could run with the allocation of v, times
// scale.
func (u *tenant) with(v *tenant, scale float64) float64 {
	n := math.Inf(1)
	for slot, amount := range u.demand {
		if amount > 0 {
			n = min(n, scale*float64(v.has(slot))/float64(amount))
		}
	}
	return n
}

// room reports whether one more request of u fits beside all running ones.
func room(capacity resource.Slots, tenants map[uuid.UUID]*tenant, u *tenant) bool {
	for slot, has := range capacity {
		for _, v := range tenants {
			has -= v.has(slot)
		}
		if u.demand[slot] > has {
			return false
		}
	}
	return true
}

// tenants returns a random set of tenants that share a pool.
func (w *world) tenants(capacity resource.Slots) (map[uuid.UUID]*tenant, *plan.Snapshot) {
	g, a := pool(w.id(), plan.OrderDRF, capacity)
	s := &plan.Snapshot{Now: noon, Groups: []plan.Group{g}, Agents: []plan.Agent{a}}
	tenants, total := map[uuid.UUID]*tenant{}, 0.0
	for range 2 + w.IntN(3) {
		u := &tenant{id: w.id(), weight: pick(w, 1.0, 1, 2, 5), demand: resource.Slots{}}
		for slot, has := range capacity {
			u.demand[slot] = w.Int64N(1 + has/pick(w, int64(2), 5, 10, 10))
		}
		u.demand["cpu"] = max(u.demand["cpu"], 1+capacity["cpu"]/20)
		for slot, has := range capacity {
			u.task = max(u.task, float64(u.demand[slot])/float64(has))
		}
		tenants[u.id] = u
		total += u.weight
		s.Shares = append(s.Shares, plan.Share{Group: g.ID, Scope: plan.ScopeUser, ID: u.id, Weight: u.weight})
		for i := range 1 + int(1/u.task) {
			s.Pending = append(s.Pending, plan.Request{
				SessionID: w.id(), Owner: u.id, Group: g.ID, Created: noon.Add(-time.Duration(i+w.IntN(20)) * time.Second),
				Kernels: []plan.KernelRequest{{ID: w.id(), Slots: u.demand}},
			})
		}
	}
	for _, u := range tenants {
		u.weight /= total
	}
	return tenants, s
}

// branch is a node of a tree of any depth: a domain, project or user.
type branch struct {
	scope    string
	children map[uuid.UUID]*branch
	weight   float64
	task     float64 // the largest dominant share of a request below
	waits    bool
	held     []plan.Holding
}

// TestSharesAreGuaranteedInTrees has users with requests of all sizes, until they have no more.
func TestSharesAreGuaranteedInTrees(t *testing.T) {
	guaranteed := 0
	cases(t, 20_000, func(t *testing.T, w *world) {
		s := w.forest()
		g := &s.Groups[0]
		root := &branch{children: map[uuid.UUID]*branch{}}
		for _, d := range plan.Plan(s) {
			r := find(s, d.SessionID)
			h := plan.Holding{Slots: r.Kernels[0].Slots}
			task := dominantShare(s, g.ID, []plan.Holding{h})
			n := root
			for _, scope := range g.Sharing.Levels {
				id := member(scope, r.Domain, r.Project, r.Owner)
				if n.children[id] == nil {
					n.children[id] = &branch{scope: scope, weight: 1, children: map[uuid.UUID]*branch{}}
					for _, sh := range s.Shares {
						if sh.Scope == scope && sh.ID == id {
							n.children[id].weight = sh.Weight
						}
					}
				}
				n = n.children[id]
				n.task = max(n.task, task)
				if d.Placed() {
					n.held = append(n.held, h)
				} else {
					n.waits = true
				}
			}
		}
		if err := root.guaranteed(s, 1, &guaranteed); err != nil {
			t.Error(err)
		}
	})
	if guaranteed == 0 {
		t.Error("no share was guaranteed: the cases are too simple")
	}
}

// guaranteed checks all nodes below one that has a guaranteed share.
func (n *branch) guaranteed(s *plan.Snapshot, share float64, count *int) error {
	weights, tasks := 0.0, 0.0
	for _, c := range n.children {
		weights += c.weight
		tasks += c.task
	}
	for id, c := range n.children {
		bound := c.weight / weights * (share - tasks)
		if !c.waits || bound <= 0 {
			continue
		}
		*count++
		if has := dominantShare(s, s.Groups[0].ID, c.held); has <= bound-1e-9 {
			return fmt.Errorf("%s %s has the share %g, guaranteed are %g", c.scope, id, has, bound)
		}
		if err := c.guaranteed(s, bound, count); err != nil {
			return err
		}
	}
	return nil
}

// forest is a pool that domains, their projects and the users in these share.
func (w *world) forest() *plan.Snapshot {
	g, a := pool(w.id(), plan.OrderDRF, resource.Slots{"cpu": 100 + w.Int64N(100), "mem": 100 + w.Int64N(100)})
	g.Sharing.Levels = pick(w,
		[]string{plan.ScopeProject}, []string{plan.ScopeProject, plan.ScopeUser},
		[]string{plan.ScopeDomain, plan.ScopeProject, plan.ScopeUser})
	s := &plan.Snapshot{Now: noon, Groups: []plan.Group{g}, Agents: []plan.Agent{a}}
	ids := []uuid.UUID{w.id(), w.id(), w.id()}
	for _, id := range ids {
		for _, scope := range g.Sharing.Levels {
			s.Shares = append(s.Shares, plan.Share{Group: g.ID, Scope: scope, ID: id, Weight: pick(w, 0.5, 1, 1, 3)})
		}
	}
	most := pick(w, int64(5), 10, 30)
	for i := range 30 + w.IntN(30) {
		s.Pending = append(s.Pending, plan.Request{
			SessionID: w.id(), Group: g.ID, Created: noon.Add(-time.Duration(i) * time.Second),
			Domain: pick(w, ids[:2]...), Project: pick(w, ids...), Owner: pick(w, ids...),
			Kernels: []plan.KernelRequest{{ID: w.id(), Slots: resource.Slots{"cpu": 1 + w.Int64N(most), "mem": 1 + w.Int64N(most)}}},
		})
	}
	return s
}

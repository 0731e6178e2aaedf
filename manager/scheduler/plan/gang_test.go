package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestKernelsOfASessionShareAnAgent places all kernels on one agent if one has room for them, in
// every strategy; otherwise on several agents; otherwise nowhere.
func TestKernelsOfASessionShareAnAgent(t *testing.T) {
	for _, strategy := range []plan.Strategy{plan.StrategyPack, plan.StrategyConcentrated, plan.StrategyDispersed, plan.StrategyRoundRobin} {
		for _, c := range []struct {
			kernels int
			free    []int64 // free whole devices of each agent
			agents  int     // smallest number of agents in use
		}{
			{3, []int64{2, 2, 4}, 1},
			{3, []int64{2, 2, 2}, 2},
			{5, []int64{2, 1, 2}, 3},
			{6, []int64{2, 1, 2}, 0},
		} {
			group := uuid.New()
			s := &plan.Snapshot{Now: noon, Groups: []plan.Group{{ID: group, Name: "g", Strategy: strategy}}}
			for i, n := range c.free {
				a := plan.Agent{ID: uuid.New(), Name: fmt.Sprint("a", i), Group: group, Schedulable: true}
				a.Devices = append(a.Devices, plan.Device{ID: uuid.New(), Allocatable: true, Healthy: true, Capacity: resource.Slots{"cpu": 64_000, "mem": 1 << 40}})
				for range n {
					a.Devices = append(a.Devices, plan.Device{ID: uuid.New(), Allocatable: true, Healthy: true, Capacity: resource.Slots{"cuda.device": 1}})
				}
				s.Agents = append(s.Agents, a)
			}
			r := plan.Request{SessionID: uuid.New(), Group: group, Created: noon}
			for range c.kernels {
				r.Kernels = append(r.Kernels, plan.KernelRequest{ID: uuid.New(), Slots: resource.Slots{"cpu": 1000, "cuda.device": 1}})
			}
			s.Pending = []plan.Request{r}
			d := plan.Plan(s)[0]
			used, kernels := map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
			for _, a := range d.Assignments {
				used[a.AgentID], kernels[a.KernelID] = true, true
			}
			if len(used) < c.agents || c.agents < 2 && len(used) != c.agents || c.agents > 0 && len(kernels) != c.kernels || d.Placed() != (c.agents > 0) {
				t.Errorf("%s: %d kernels on agents with %v free devices use %d agents, want %d: %+v", strategy, c.kernels, c.free, len(used), c.agents, d)
			}
		}
	}
}

// TestKernelsMakeWay has several kernels. If one of them took the best devices for itself, there
// would be none for another kernel.
func TestKernelsMakeWay(t *testing.T) {
	one := resource.Slots{"cuda.device": 1}
	for name, c := range map[string]struct {
		site    func(*site)
		kernels []resource.Slots
	}{
		"the only agent with enough": {func(s *site) {
			for i := range 3 {
				s.agent(fmt.Sprint("a", i), nil).Devices[0].Used = resource.Slots{"cpu": int64(2000 * i)}
			}
		}, []resource.Slots{one, {"cuda.device": 1, "cpu": 5000}, {"cuda.device": 1, "cpu": 7000}}},
		"the only two that are linked": {func(s *site) {
			s.Groups[0].Topology = plan.TopologyLinked
			a := s.agent("a", nil, nil, nil)
			link(a)
			for i := range a.Devices[:2] { // so that the first kernel prefers the same node
				a.Devices[i].NUMANode = a.Devices[2].NUMANode
			}
		}, []resource.Slots{{"cuda.device": 1, "cpu": 1000, "mem": 1}, {"cuda.device": 2}}},
		"the only device with enough": {func(s *site) {
			s.agent("a", resource.Slots{"cuda.shares": 400}, resource.Slots{"cuda.shares": 500})
		}, []resource.Slots{{"cuda.shares": 300}, {"cuda.shares": 200}, {"cuda.shares": 200}, {"cuda.shares": 400}}},
	} {
		for _, strategy := range plan.Strategies {
			for from := range c.kernels {
				s := newSite()
				s.Groups[0].Strategy = strategy
				c.site(s)
				s.ask("s", 0, slices.Concat(c.kernels[from:], c.kernels[:from])...)
				if d := s.decide(t)["s"]; !d.Placed() {
					t.Errorf("%s, %s, from kernel %d on: %+v", name, strategy, from, d.Waiting)
				}
			}
		}
	}
}

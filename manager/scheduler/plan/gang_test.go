package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestKernelsOfASessionShareAnAgent places kernels on one agent if one has room
// for all, by whichever strategy, else on several, else none of them.
func TestKernelsOfASessionShareAnAgent(t *testing.T) {
	for _, strategy := range []plan.Strategy{plan.StrategyPack, plan.StrategyConcentrated, plan.StrategyDispersed, plan.StrategyRoundRobin} {
		for _, c := range []struct {
			kernels int
			free    []int64 // whole devices of each agent
			agents  int     // that are used at least
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

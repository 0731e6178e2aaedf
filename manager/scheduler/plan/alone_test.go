package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestAgentsWithoutANetwork has agents whose kernels reach none on others: a
// session is there whole, or not at all.
func TestAgentsWithoutANetwork(t *testing.T) {
	few := 3
	for name, c := range map[string]struct {
		free      []int64 // cores of each agent
		alone     []int   // those agents
		networked *int
		kernels   int // of a core each
		on        int // agents that are used; 0: it waits
		says      string
	}{
		"the only one, with room":          {[]int64{2}, []int{0}, nil, 2, 1, ""},
		"the only one, without":            {[]int64{1}, []int{0}, nil, 2, 0, "some of its kernels, which would have no network with the others (a0: off)"},
		"full, and that is why":            {[]int64{0}, []int{0}, nil, 2, 0, "short of cpu"},
		"beside others that have room":     {[]int64{1, 1, 1}, []int{0}, nil, 2, 2, ""},
		"as large as the session":          {[]int64{3, 1, 1}, []int{0}, nil, 3, 1, ""},
		"needed for a part of it":          {[]int64{1, 1, 2}, []int{2}, nil, 3, 0, "(a2: off)"},
		"one kernel":                       {[]int64{1}, []int{0}, nil, 1, 1, ""},
		"a network for so many":            {[]int64{1, 1, 1}, nil, &few, 3, 3, ""},
		"none for so many":                 {[]int64{1, 1, 1, 1}, nil, &few, 4, 0, "no network for so many kernels is left"},
		"none for so many, and none asked": {[]int64{4, 1}, nil, &few, 4, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			group := uuid.New()
			s := &plan.Snapshot{Now: noon, Groups: []plan.Group{{ID: group, Name: "g"}}, Networked: c.networked}
			for i, n := range c.free {
				s.Agents = append(s.Agents, plan.Agent{ID: uuid.New(), Name: fmt.Sprint("a", i), Group: group, Schedulable: true, Devices: []plan.Device{
					{ID: uuid.New(), Allocatable: true, Healthy: true, Capacity: resource.Slots{"cpu": 8000}, Used: resource.Slots{"cpu": 8000 - 1000*n}},
				}})
			}
			alone := map[uuid.UUID]bool{}
			for _, i := range c.alone {
				s.Agents[i].Alone = "off"
				alone[s.Agents[i].ID] = true
			}
			r := plan.Request{SessionID: uuid.New(), Group: group, Created: noon}
			for range c.kernels {
				r.Kernels = append(r.Kernels, plan.KernelRequest{ID: uuid.New(), Slots: resource.Slots{"cpu": 1000}})
			}
			s.Pending = []plan.Request{r}
			d := plan.Plan(s)[0]
			used := map[uuid.UUID]bool{}
			for _, a := range d.Assignments {
				used[a.AgentID] = true
			}
			if len(used) != c.on || d.Placed() != (c.on > 0) {
				t.Fatalf("it is on %d agents, want %d: %+v", len(used), c.on, d)
			}
			for id := range used {
				if alone[id] && len(used) > 1 {
					t.Errorf("it is on an agent without a network, and on others")
				}
			}
			if d.Waiting != nil && !strings.Contains(d.Waiting.Summary, c.says) {
				t.Errorf("it waits because %s", d.Waiting.Summary)
			}
		})
	}
}

package openb

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// Product runs Berth's planner: one pass over all arrivals, in their order, in a group that never
// reserves agents. The models that a task can run on are represented by the name of a volume. With
// shuffled, the seed also determines which node has which name.
func Product(strategy plan.Strategy, demand func(list []Task) []plan.Demand, shuffled bool) Policy {
	return func(nodes []Node, list, arrivals []Task, seed uint64) Result {
		s := snapshot(nodes, arrivals, strategy, demand(list))
		if shuffled {
			rng := rand.New(rand.NewPCG(seed, 1))
			rng.Shuffle(len(s.Agents), func(i, j int) {
				s.Agents[i].Name, s.Agents[j].Name = s.Agents[j].Name, s.Agents[i].Name
			})
		}
		begin := time.Now()
		decisions := plan.Plan(s)
		r := Result{Decisions: len(decisions), Seconds: time.Since(begin).Seconds()}
		placed := int64(0)
		for i := range decisions {
			for _, as := range decisions[i].Assignments {
				for _, al := range as.Allocs {
					switch al.Slot {
					case "cuda.shares":
						placed += al.Amount
					case "cuda.device":
						placed += 1000 * al.Amount
					}
				}
			}
		}
		r.Unallocated = 100 * (1 - float64(placed)/float64(capacity(nodes)))
		return r
	}
}

// GivenDemand is the mixture of the list, as FGD receives it.
func GivenDemand(list []Task) []plan.Demand {
	counts := map[Task]int{}
	for _, t := range list {
		counts[t]++
	}
	var out []plan.Demand
	for _, t := range list {
		if n := counts[t]; n > 0 {
			d := plan.Demand{Group: number(0, 0), Slots: slots(&t), Weight: float64(n)}
			if t.Spec != "" {
				d.Volumes = []string{t.Spec}
			}
			out = append(out, d)
			delete(counts, t)
		}
	}
	return out
}

func snapshot(nodes []Node, arrivals []Task, strategy plan.Strategy, demand []plan.Demand) *plan.Snapshot {
	group := number(0, 0)
	s := &plan.Snapshot{
		Now: noon, Demand: demand,
		Groups:    []plan.Group{{ID: group, Name: "openb", HoldAfter: -1, Strategy: strategy}},
		SlotTypes: []plan.SlotType{{Name: "cuda.device", ExclusiveWith: []string{"cuda.shares"}}},
	}
	specs := map[string]bool{}
	asked := map[Task]resource.Slots{}
	for i := range arrivals {
		t := arrivals[i]
		if asked[t] == nil {
			asked[t] = slots(&t)
		}
		r := plan.Request{
			SessionID: number(1, i), Group: group, Created: noon.Add(time.Duration(i) * time.Microsecond),
			Kernels: []plan.KernelRequest{{ID: number(2, i), Slots: asked[t]}},
		}
		if t.Spec != "" {
			r.Volumes = []string{t.Spec}
			specs[t.Spec] = true
		}
		s.Pending = append(s.Pending, r)
	}
	for i := range nodes {
		s.Agents = append(s.Agents, agent(i, &nodes[i], specs))
	}
	return s
}

func agent(i int, n *Node, specs map[string]bool) plan.Agent {
	a := plan.Agent{ID: number(3, i), Name: fmt.Sprintf("node-%06d", i), Group: number(0, 0), Schedulable: true}
	for spec := range specs {
		for _, model := range strings.Split(spec, "|") {
			if model == n.Model {
				a.Volumes = append(a.Volumes, spec)
			}
		}
	}
	add := func(capacity resource.Slots) {
		a.Devices = append(a.Devices, plan.Device{
			ID: number(4, 64*i+len(a.Devices)), Allocatable: true, Healthy: true, Capacity: capacity,
		})
	}
	add(resource.Slots{resource.CPU: n.CPU})
	add(resource.Slots{resource.Mem: n.Mem})
	for range n.GPUs {
		add(resource.Slots{"cuda.device": 1, "cuda.shares": 1000})
	}
	return a
}

// slots requests a part of one GPU, or whole GPUs.
func slots(t *Task) resource.Slots {
	s := resource.Slots{resource.CPU: t.CPU, resource.Mem: t.Mem}
	switch {
	case t.GPUs == 1 && t.Milli < 1000:
		s["cuda.shares"] = t.Milli
	case t.GPUs > 0:
		s["cuda.device"] = int64(t.GPUs)
	}
	return s
}

func number(kind byte, i int) (id uuid.UUID) {
	id[0] = kind
	binary.BigEndian.PutUint64(id[8:], uint64(i))
	return id
}

package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// BenchmarkGangs places gangs of three kernels on 5,000 agents of eight devices until well after
// the agents are full. In "linked", the devices of a NUMA node are linked to each other.
func BenchmarkGangs(b *testing.B) {
	for _, linked := range []bool{false, true} {
		b.Run(map[bool]string{false: "flat", true: "linked"}[linked], func(b *testing.B) {
			s := gangs(5000, linked)
			var placed, partial int
			for b.Loop() {
				placed, partial = 0, 0
				decisions := plan.Plan(s)
				for i := range decisions {
					switch n := len(decisions[i].Assignments); {
					case n == len(s.Pending[0].Kernels):
						placed++
					case n > 0:
						partial++
					}
				}
			}
			n := len(s.Pending)
			b.ReportMetric(float64(b.Elapsed())/float64(time.Millisecond)/float64(n*b.N), "ms/gang")
			b.ReportMetric(float64(placed), "placed")
			b.ReportMetric(float64(n-placed), "waiting")
			b.ReportMetric(float64(partial), "partial")
		})
	}
}

// gangs returns requests for one and a half times the capacity: gangs of unequal kernels, among
// sessions of one kernel.
func gangs(agents int, linked bool) *plan.Snapshot {
	w := newWorld(uint64(agents))
	s := newSite()
	for i := range agents {
		a := s.agent(fmt.Sprintf("n%d", i), make([]resource.Slots, 8)...)
		if linked {
			link(a)
		}
	}
	for i := range 2 * agents {
		var kernels []resource.Slots
		for range 3 {
			slots := resource.Slots{"cpu": int64(100 * (1 + w.IntN(10))), "mem": 1 + w.Int64N(8)}
			switch w.IntN(3) {
			case 0:
				slots["cuda.shares"] = int64(50 * (1 + w.IntN(20)))
			default:
				slots["cuda.device"] = 1 << w.IntN(3)
			}
			kernels = append(kernels, slots)
		}
		s.ask(fmt.Sprintf("s%d", i), 0, kernels...)
	}
	return &s.Snapshot
}

// link puts an agent's devices on two NUMA nodes, with links within each.
func link(a *plan.Agent) {
	nodes := [2]int{0, 1}
	gpus := a.Devices[2:]
	for i := range gpus {
		gpus[i].Name, gpus[i].NUMANode = fmt.Sprint(i), &nodes[2*i/len(gpus)]
		for j := range i {
			if gpus[i].NUMANode == gpus[j].NUMANode {
				a.Links = append(a.Links, report.Link{A: fmt.Sprint(i), B: fmt.Sprint(j), Type: "nvlink", Distance: 1, GBps: 300, P2P: true})
			}
		}
	}
}

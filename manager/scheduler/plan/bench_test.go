package plan_test

import (
	"fmt"
	"testing"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// BenchmarkPlan fills a cluster of 8-GPU agents, and then lets the same number of requests wait.
func BenchmarkPlan(b *testing.B) {
	for _, agents := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) {
			s := crowd(agents)
			placed := 0
			for b.Loop() {
				decisions := plan.Plan(s)
				placed = 0
				for i := range decisions {
					if decisions[i].Placed() {
						placed++
					}
				}
			}
			n := len(s.Pending)
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "decisions/s")
			b.ReportMetric(float64(placed), "placed")
			b.ReportMetric(float64(n-placed), "waiting")
		})
	}
}

// crowd returns requests of many sizes for about twice the capacity of the agents.
func crowd(agents int) *plan.Snapshot {
	w := newWorld(uint64(agents))
	s := newSite()
	for i := range agents {
		s.agent(fmt.Sprintf("n%d", i), make([]resource.Slots, 8)...)
	}
	for i := range 16 * agents {
		slots := resource.Slots{"cpu": int64(100 * (1 + w.IntN(20))), "mem": 1 + w.Int64N(8)}
		switch w.IntN(4) {
		case 0:
			slots["cuda.device"] = 1 << w.IntN(4)
		case 1, 2:
			slots["cuda.shares"] = int64(50 * (1 + w.IntN(20)))
		}
		s.ask(fmt.Sprintf("s%d", i), 0, slots)
	}
	return &s.Snapshot
}

package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// BenchmarkGrowth shows how the cost of decisions grows with the number of agents, of devices per
// agent, and of requests that wait for more than any agent has free. "first" is a Plan of all
// waiting requests from scratch. "next" is the time in which a long-lived Planner decides about one
// more request, of another kind, that fits.
func BenchmarkGrowth(b *testing.B) {
	for _, sizes := range []struct {
		axis   string
		points [][3]int // agents, devices, backlog
	}{
		{"nodes", [][3]int{{625, 8, 1000}, {1250, 8, 1000}, {2500, 8, 1000}, {5000, 8, 1000}, {10_000, 8, 1000}}},
		{"devices", [][3]int{{1250, 1, 1000}, {1250, 2, 1000}, {1250, 4, 1000}, {1250, 8, 1000}, {1250, 16, 1000}}},
		{"backlog", [][3]int{{1250, 8, 1250}, {1250, 8, 2500}, {1250, 8, 5000}, {1250, 8, 10_000}, {1250, 8, 20_000}}},
	} {
		for i, p := range sizes.points {
			s := blocked(p[0], p[1], p[2])
			at := p[map[string]int{"nodes": 0, "devices": 1, "backlog": 2}[sizes.axis]]
			b.Run(fmt.Sprintf("first/%s=%d", sizes.axis, at), func(b *testing.B) {
				for b.Loop() {
					plan.Plan(s)
				}
				b.ReportMetric(float64(b.Elapsed())/float64(time.Microsecond)/float64(b.N), "us/op")
			})
			b.Run(fmt.Sprintf("next/%s=%d", sizes.axis, at), func(b *testing.B) {
				var planner plan.Planner
				planner.Decide(s, plan.Change{All: true})
				n := 0
				for b.Loop() {
					n++
					r := plan.Request{SessionID: idOf(fmt.Sprint("next", i, n)), Group: idOf("group"), Created: noon,
						Kernels: []plan.KernelRequest{{ID: idOf("kernel"), Slots: resource.Slots{"cpu": 1, "mem": 1}}}}
					if d := planner.Decide(s, plan.Change{New: []plan.Request{r}}); len(d) != 1 || !d[0].Placed() {
						b.Fatalf("%d decisions", len(d))
					}
				}
				b.ReportMetric(float64(b.Elapsed())/float64(time.Microsecond)/float64(b.N), "us/op")
			})
		}
	}
}

// blocked returns a cluster in which half of each device is in use, and requests that wait for
// whole devices.
func blocked(agents, devices, backlog int) *plan.Snapshot {
	s := newSite()
	for i := range agents {
		used := make([]resource.Slots, devices)
		for d := range used {
			used[d] = resource.Slots{"cuda.shares": int64(100 * (1 + (i+d)%5))}
		}
		a := s.agent(fmt.Sprintf("n%d", i), used...)
		a.Devices[0].Capacity, a.Devices[1].Capacity = resource.Slots{"cpu": 1 << 40}, resource.Slots{"mem": 1 << 40}
	}
	for i := range backlog {
		s.ask(fmt.Sprintf("s%d", i), 0, resource.Slots{"cpu": int64(100 * (1 + i%7)), "mem": 1, "cuda.device": int64(1 + i%3)})
	}
	s.Demand = []plan.Demand{
		{Group: idOf("group"), Slots: resource.Slots{"cpu": 100, "mem": 1, "cuda.device": 1}, Weight: 1},
		{Group: idOf("group"), Slots: resource.Slots{"cpu": 100, "mem": 1, "cuda.shares": 500}, Weight: 2},
	}
	return &s.Snapshot
}

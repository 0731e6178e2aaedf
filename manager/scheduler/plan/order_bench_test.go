package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// BenchmarkOrder decides on a backlog of which half fits. The time beyond that of fifo is the cost
// of the order. The order is computed again after each placement, and this must not make the time
// per decision grow with the backlog.
func BenchmarkOrder(b *testing.B) {
	for _, order := range []plan.Order{plan.OrderFIFO, plan.OrderLIFO, plan.OrderDRF, plan.OrderFairShare} {
		for _, backlog := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/backlog=%d", order, backlog), func(b *testing.B) {
				s := backlogOf(order, backlog)
				for b.Loop() {
					plan.Plan(s)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*backlog), "ns/decision")
			})
		}
	}
}

// backlogOf returns a backlog with one user for every twenty requests.
func backlogOf(order plan.Order, n int) *plan.Snapshot {
	w := newWorld(uint64(n))
	g, a := pool(idOf("group"), order, resource.Slots{"cpu": int64(n) * 1000, "mem": int64(n) * 4})
	s := &plan.Snapshot{Now: noon, Groups: []plan.Group{g}, Agents: []plan.Agent{a}}
	for range n {
		user := w.IntN(1 + n/20)
		s.Pending = append(s.Pending, plan.Request{
			SessionID: w.id(), Group: g.ID, Domain: idOf("d"),
			Project: idOf(fmt.Sprintf("p%d", user/10)), Owner: idOf(fmt.Sprintf("u%d", user)),
			Created: noon.Add(-time.Duration(w.IntN(86400)) * time.Second), Priority: w.IntN(3),
			Kernels: []plan.KernelRequest{{ID: w.id(), Slots: resource.Slots{"cpu": 1000 * (1 + w.Int64N(4)), "mem": 1 + w.Int64N(8)}}},
		})
	}
	return s
}

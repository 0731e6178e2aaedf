package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// BenchmarkPartitions has 1,000 agents of eight devices, with the profiles and positions of an A100
// with its eight slices of memory. The requests are for one and a half times the capacity. It
// reports the part of the capacity that was allocated.
func BenchmarkPartitions(b *testing.B) {
	w := newWorld(1)
	partitions(b, 1000, 33, func() map[string]int64 {
		return map[string]int64{pick(w, "1g", "1g", "1g", "2g", "2g", "3g", "4g", "7g"): 1}
	})
}

// BenchmarkPartitionsOfManyKinds places kernels that request partitions of several profiles. Some
// of them do not fit together although enough of each profile is free.
func BenchmarkPartitionsOfManyKinds(b *testing.B) {
	w := newWorld(1)
	partitions(b, 50, 4, func() map[string]int64 {
		return map[string]int64{"1g": int64(1 + w.IntN(8)), "2g": int64(1 + w.IntN(6)), "3g": int64(1 + w.IntN(4))}
	})
}

// partitions queues the given number of requests per agent, each returned by ask.
func partitions(b *testing.B, agents, times int, ask func() map[string]int64) {
	s := newSite()
	for i := range agents {
		a := s.agent(fmt.Sprintf("n%d", i))
		a.Counters = map[string]map[string]int64{}
		for g := range 8 {
			counters, devices := cut(a.Name, fmt.Sprint(g), 8, true, true, map[string][][]int{
				"1g": {{0}, {1}, {2}, {3}, {4}, {5}, {6}},
				"2g": {{0, 1}, {2, 3}, {4, 5}},
				"3g": {{0, 1, 2, 3}, {4, 5, 6, 7}},
				"4g": {{0, 1, 2, 3}},
				"7g": {{0, 1, 2, 3, 4, 5, 6, 7}},
			})
			for set, c := range counters {
				a.Counters[set] = c
			}
			a.Devices = append(a.Devices, devices...)
		}
	}
	slices := map[string]int{"1g": 1, "2g": 2, "3g": 4, "4g": 4, "7g": 8}
	for i := range times * agents {
		slots := resource.Slots{"cpu": 10}
		for profile, n := range ask() {
			slots["cuda.device:"+profile] = n
		}
		s.ask(fmt.Sprintf("s%d", i), 0, slots)
	}
	given := 0
	for b.Loop() {
		given = 0
		for _, d := range plan.Plan(&s.Snapshot) {
			for _, place := range places(d) {
				given += slices[strings.Split(strings.Fields(place)[1], ":")[1]]
			}
		}
	}
	b.ReportMetric(float64(len(s.Pending)*b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(100*float64(given)/float64(agents*8*8), "%slices")
}

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// BenchmarkPartitions asks 1,000 agents of eight devices, in the profiles and places
// of an A100 with its eight slices of memory, for a half more than they have, and
// tells how much of it all was given away.
func BenchmarkPartitions(b *testing.B) {
	w := newWorld(1)
	s := newSite()
	const agents = 1000
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
	for i := range 33 * agents {
		slots := resource.Slots{"cpu": 10}
		slots["cuda.device:"+pick(w, "1g", "1g", "1g", "2g", "2g", "3g", "4g", "7g")] = 1
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
	b.ReportMetric(100*float64(given)/(agents*8*8), "%slices")
}

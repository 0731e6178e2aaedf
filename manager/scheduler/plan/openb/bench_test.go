package openb_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/scheduler/plan/openb"
)

const (
	firstSeed = 42
	seeds     = 10
)

// load reads the trace. It skips the benchmark if the trace does not exist.
func load(b *testing.B) *openb.Data {
	dir := os.Getenv("BERTH_OPENB")
	if dir == "" {
		b.Skip("BERTH_OPENB does not name the folder of the openb trace")
	}
	d, err := openb.Load(dir)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func pack(shuffled bool) openb.Policy {
	return openb.Product(plan.StrategyPack, openb.GivenDemand, shuffled)
}

// BenchmarkPacking prints the amount that each policy leaves unallocated on each list.
func BenchmarkPacking(b *testing.B) {
	d := load(b)
	learned := func([]openb.Task) []plan.Demand { return nil }
	fmt.Println("list\tpolicy\tpublished\tmean\tmin\tmax\tdecisions/s")
	for _, name := range slices.Sorted(maps.Keys(d.Lists)) {
		for _, p := range []struct {
			name, published string
			policy          openb.Policy
		}{
			{"Random", "Random", openb.Random},
			{"BestFit", "BestFit", openb.BestFit},
			{"FGD", "FGD", openb.FGD},
			{"concentrated", "", openb.Product(plan.StrategyConcentrated, learned, false)},
			{"dispersed", "", openb.Product(plan.StrategyDispersed, learned, false)},
			{"roundrobin", "", openb.Product(plan.StrategyRoundRobin, learned, false)},
			{"pack", "", pack(false)},
			{"pack, names shuffled", "", pack(true)},
			{"pack, demand from the queue", "", openb.Product(plan.StrategyPack, learned, false)},
		} {
			published := "-"
			if v, ok := d.Published[name][p.published]; ok {
				published = fmt.Sprintf("%.2f", v)
			}
			s := sample(d.Nodes, d.Lists[name], p.policy, seeds)
			fmt.Printf("%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.0f\n", name, p.name, published, s.mean, s.least, s.most, s.rate)
		}
	}
}

// BenchmarkNames keeps the arrivals and shuffles the names of the nodes.
func BenchmarkNames(b *testing.B) {
	d := load(b)
	for _, name := range slices.Sorted(maps.Keys(d.Lists)) {
		list := d.Lists[name]
		arrivals := openb.Arrivals(d.Nodes, list, firstSeed)
		least, most := math.Inf(1), math.Inf(-1)
		for seed := range uint64(seeds) {
			r := pack(true)(d.Nodes, list, arrivals, seed)
			least, most = min(least, r.Unallocated), max(most, r.Unallocated)
		}
		fmt.Printf("%s\tspread over %d shuffles of the names\t%.2f\n", name, seeds, most-least)
	}
}

// BenchmarkScale repeats the nodes of the list `default`.
func BenchmarkScale(b *testing.B) {
	d := load(b)
	list := d.Lists["default"]
	fmt.Println("nodes\tmean\tdecisions/s")
	for _, n := range []int{1, 4, 12} {
		nodes := openb.Times(d.Nodes, n)
		s := sample(nodes, list, pack(false), 3)
		fmt.Printf("%d\t%.2f\t%.0f\n", len(nodes), s.mean, s.rate)
	}
}

type summary struct{ mean, least, most, rate float64 }

func sample(nodes []openb.Node, list []openb.Task, p openb.Policy, n int) summary {
	s := summary{least: math.Inf(1), most: math.Inf(-1)}
	decisions, seconds := 0, 0.0
	for seed := range uint64(n) {
		r := p(nodes, list, openb.Arrivals(nodes, list, firstSeed+seed), firstSeed+seed)
		s.mean += r.Unallocated / float64(n)
		s.least, s.most = min(s.least, r.Unallocated), max(s.most, r.Unallocated)
		decisions += r.Decisions
		seconds += r.Seconds
	}
	s.rate = float64(decisions) / seconds
	return s
}

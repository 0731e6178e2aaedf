package openb_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berthhq/berth/manager/scheduler/plan/openb"
)

// family returns lists like those that the authors of the trace derived from the list `default`:
// more or fewer tasks without a GPU, more shares, more tasks of several GPUs, and tasks that
// require certain GPU models.
func family(nodes []openb.Node, base []openb.Task) (names []string, lists map[string][]openb.Task) {
	rng := rand.New(rand.NewPCG(7, 7))
	kinds := map[string][]openb.Task{}
	for _, t := range base {
		k := kindOf(&t)
		kinds[k] = append(kinds[k], t)
	}
	lists = map[string][]openb.Task{}
	add := func(name string, list []openb.Task) {
		names = append(names, name)
		lists[name] = list
	}
	some := func(kind string, n int) (list []openb.Task) {
		for range n {
			list = append(list, kinds[kind][rng.IntN(len(kinds[kind]))])
		}
		return list
	}
	gpu := func() (list []openb.Task) {
		return append(append(append(list, kinds["share"]...), kinds["one"]...), kinds["several"]...)
	}
	for _, percent := range []int{50, 100, 200, 250} {
		add(fmt.Sprintf("cpu%03d", percent), append(gpu(), some("none", len(kinds["none"])*percent/100)...))
	}
	// mixed requests the given percentage of its GPUs through tasks of one kind.
	mixed := func(kind string, percent int64) (list []openb.Task) {
		rest := []openb.Task{}
		for _, other := range []string{"share", "one", "several"} {
			if other != kind {
				rest = append(rest, kinds[other]...)
			}
		}
		var total int64
		for _, t := range base {
			total += t.GPU()
		}
		fill := func(from []openb.Task, goal int64) {
			for sum := int64(0); sum < goal; {
				t := from[rng.IntN(len(from))]
				list = append(list, t)
				sum += t.GPU()
			}
		}
		fill(kinds[kind], total*percent/100)
		if percent < 100 {
			fill(rest, total*(100-percent)/100)
		}
		return append(list, kinds["none"]...)
	}
	for _, percent := range []int64{40, 60, 80, 100} {
		add(fmt.Sprintf("gpushare%d", percent), mixed("share", percent))
	}
	for _, percent := range []int64{20, 30, 40, 50} {
		add(fmt.Sprintf("multigpu%d", percent), mixed("several", percent))
	}
	for _, percent := range []int{10, 20, 25, 33} {
		list := append([]openb.Task{}, base...)
		for i := range list {
			if list[i].GPUs > 0 && rng.IntN(100) < percent {
				list[i].Spec = nodes[rng.IntN(len(nodes))].Model
			}
		}
		add(fmt.Sprintf("gpuspec%d", percent), list)
	}
	return names, lists
}

func kindOf(t *openb.Task) string {
	switch {
	case t.GPUs == 0:
		return "none"
	case t.GPUs > 1:
		return "several"
	case t.Milli < 1000:
		return "share"
	}
	return "one"
}

// BenchmarkFamily compares the strategy pack with FGD on lists that pack was not tuned on.
func BenchmarkFamily(b *testing.B) {
	d := load(b)
	names, lists := family(d.Nodes, d.Lists["default"])
	fmt.Println("list\tFGD\tpack\tcut, %")
	for _, name := range names {
		fgd := sample(d.Nodes, lists[name], openb.FGD, 3)
		own := sample(d.Nodes, lists[name], pack(false), 3)
		fmt.Printf("%s\t%.2f\t%.2f\t%.1f\n", name, fgd.mean, own.mean, 100*(1-own.mean/fgd.mean))
	}
}

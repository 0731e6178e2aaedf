package openb

import (
	"math/rand/v2"
)

// Arrivals follows the published protocol: random copies of tasks are appended until they request
// 130 % of the GPUs, then all are shuffled. A longer list is cut there.
func Arrivals(nodes []Node, list []Task, seed uint64) []Task {
	rng := rand.New(rand.NewPCG(seed, 0))
	target, sum := capacity(nodes)*13/10, int64(0)
	tasks := append([]Task{}, list...)
	for i := range tasks {
		sum += tasks[i].GPU()
	}
	for sum < target {
		t := list[rng.IntN(len(list))]
		tasks = append(tasks, t)
		sum += t.GPU()
	}
	rng.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	arrived := int64(0)
	for i := range tasks {
		if arrived += tasks[i].GPU(); arrived >= target {
			return tasks[:i+1]
		}
	}
	return tasks
}

// capacity is all GPUs, in thousandths.
func capacity(nodes []Node) (sum int64) {
	for i := range nodes {
		sum += 1000 * int64(nodes[i].GPUs)
	}
	return sum
}

// Times repeats the nodes.
func Times(nodes []Node, n int) []Node {
	var out []Node
	for range n {
		out = append(out, nodes...)
	}
	return out
}

// Result is one run of a policy.
type Result struct {
	Unallocated float64 // % of the GPUs
	Decisions   int
	Seconds     float64
}

// Policy places tasks one by one on the nodes.
type Policy func(nodes []Node, list, arrivals []Task, seed uint64) Result

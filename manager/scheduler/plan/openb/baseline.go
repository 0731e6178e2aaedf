package openb

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// state is a node as the policies of the literature see it. Free amounts of GPUs are in falling
// order.
type state struct {
	cpu, mem int64
	model    string
	gpus     int
	free     [16]int16
}

// left is the total free amount of its GPUs.
func (s *state) left() (sum int64) {
	for _, f := range s.free[:s.gpus] {
		sum += int64(f)
	}
	return sum
}

// allows reports whether a task can run on the node, apart from GPUs.
func (s *state) allows(t *Task) bool {
	return s.cpu >= t.CPU && s.mem >= t.Mem && (t.Spec == "" || slices.Contains(strings.Split(t.Spec, "|"), s.model))
}

// options returns the states after the task has been placed: one for every GPU with a different
// free amount, the smallest first.
func (s *state) options(t *Task) []state {
	if !s.allows(t) || t.GPUs > s.gpus || t.GPUs > 0 && int64(s.free[t.GPUs-1]) < t.Milli {
		return nil
	}
	next := *s
	next.cpu, next.mem = s.cpu-t.CPU, s.mem-t.Mem
	if t.GPUs != 1 {
		for g := range t.GPUs {
			next.free[g] -= int16(t.Milli)
		}
		next.sort()
		return []state{next}
	}
	var out []state
	for g := s.gpus - 1; g >= 0; g-- {
		if int64(s.free[g]) < t.Milli || g > 0 && s.free[g] == s.free[g-1] {
			continue
		}
		o := next
		o.free[g] -= int16(t.Milli)
		o.sort()
		out = append(out, o)
	}
	return out
}

func (s *state) sort() {
	slices.SortFunc(s.free[:s.gpus], func(a, b int16) int { return int(b) - int(a) })
}

// scorer scores the effect of a placement on a node: lower is better.
type scorer func(before, after *state) float64

// greedy places every task where the score is lowest; equal scores go to the earlier node, and
// there to the GPU with the smallest free amount.
func greedy(make func(nodes []Node, list []Task) scorer) Policy {
	return func(nodes []Node, list, arrivals []Task, _ uint64) Result {
		score := make(nodes, list)
		type choice struct {
			known, fits bool
			score       float64
			after       state
		}
		states := begin(nodes)
		memo := map[Task][]choice{} // by node, until it changes
		start, placed := time.Now(), int64(0)
		for i := range arrivals {
			t := arrivals[i]
			row := memo[t]
			if row == nil {
				row = append(row, slices.Repeat([]choice{{}}, len(states))...)
				memo[t] = row
			}
			best := -1
			for n := range states {
				c := &row[n]
				if !c.known {
					*c = choice{known: true}
					for _, o := range states[n].options(&t) {
						if v := score(&states[n], &o); !c.fits || v < c.score {
							*c = choice{true, true, v, o}
						}
					}
				}
				if c.fits && (best < 0 || c.score < row[best].score) {
					best = n
				}
			}
			if best < 0 {
				continue
			}
			placed += t.GPU()
			states[best] = row[best].after
			for _, r := range memo {
				r[best].known = false
			}
		}
		return result(nodes, placed, len(arrivals), start)
	}
}

// usual is the part of a list that FGD's mixture covers: the most frequent tasks, as in the
// published implementation.
const usual = 0.95

// FGD is fragmentation gradient descent: it chooses the placement that adds least to the GPUs that
// a usual task of the list cannot use. As in the published implementation, the score is in whole
// percent of a logistic curve, and equal scores go to the earlier node.
var FGD = greedy(func(_ []Node, list []Task) scorer {
	types := usualTypes(list)
	known := map[state]float64{}
	fragments := func(s *state) float64 {
		if f, ok := known[*s]; ok {
			return f
		}
		f := 0.0
		for i := range types {
			f += types[i].share * float64(types[i].fragment(s))
		}
		known[*s] = f
		return f
	}
	return func(before, after *state) float64 {
		return -math.Floor(100 / (1 + math.Exp((fragments(after)-fragments(before))/1000)))
	}
})

// kind is a distinct task of a list and its fraction of the list.
type kind struct {
	Task
	share float64
}

// usualTypes returns the most frequent tasks of a list; of equally frequent ones, the first comes
// first.
func usualTypes(list []Task) []kind {
	at := map[Task]int{}
	var types []kind
	for _, t := range list {
		n, ok := at[t]
		if !ok {
			n = len(types)
			at[t] = n
			types = append(types, kind{Task: t})
		}
		types[n].share++
	}
	slices.SortStableFunc(types, func(a, b kind) int { return cmp.Compare(b.share, a.share) })
	sum := 0.0
	for i := range types {
		if sum += types[i].share; sum >= usual*float64(len(list)) {
			types = types[:i+1]
			break
		}
	}
	for i := range types {
		types[i].share /= sum
	}
	return types
}

// fragment returns the amount of a node's free GPUs that the task cannot use.
func (t *kind) fragment(s *state) (sum int64) {
	able := 0
	for _, f := range s.free[:s.gpus] {
		if int64(f) >= t.Milli {
			able++
		} else {
			sum += int64(f)
		}
	}
	if t.GPUs == 0 || able < t.GPUs || !s.allows(&t.Task) {
		return s.left()
	}
	return sum
}

// BestFit leaves the smallest amount of cpu and GPUs free, in parts of the largest node. As in the
// published implementation, the score is in whole percent, and equal scores go to the earlier node.
var BestFit = greedy(func(nodes []Node, _ []Task) scorer {
	var cpu, gpus float64
	for i := range nodes {
		cpu, gpus = max(cpu, float64(nodes[i].CPU)), max(gpus, 1000*float64(nodes[i].GPUs))
	}
	return func(_, after *state) float64 {
		return math.Ceil(50 * (float64(after.cpu)/cpu + float64(after.left())/gpus))
	}
})

// Random takes any node with room, and on it any GPU with room.
func Random(nodes []Node, _, arrivals []Task, seed uint64) Result {
	rng := rand.New(rand.NewPCG(seed, 2))
	states := begin(nodes)
	start, placed := time.Now(), int64(0)
	for i := range arrivals {
		t := &arrivals[i]
		var able []int
		for n := range states {
			if states[n].allows(t) && (t.GPUs == 0 || states[n].roomy(t) >= t.GPUs) {
				able = append(able, n)
			}
		}
		if len(able) == 0 {
			continue
		}
		states[able[rng.IntN(len(able))]].takeAny(t, rng)
		placed += t.GPU()
	}
	return result(nodes, placed, len(arrivals), start)
}

// roomy counts the GPUs that can take the task; they come first.
func (s *state) roomy(t *Task) (n int) {
	for n < s.gpus && int64(s.free[n]) >= t.Milli {
		n++
	}
	return n
}

// takeAny places a task that fits on any of its GPUs.
func (s *state) takeAny(t *Task, rng *rand.Rand) {
	s.cpu, s.mem = s.cpu-t.CPU, s.mem-t.Mem
	for _, g := range rng.Perm(s.roomy(t))[:t.GPUs] {
		s.free[g] -= int16(t.Milli)
	}
	s.sort()
}

func begin(nodes []Node) []state {
	states := make([]state, len(nodes))
	for i, n := range nodes {
		states[i] = state{cpu: n.CPU, mem: n.Mem, model: n.Model, gpus: n.GPUs}
		for g := range n.GPUs {
			states[i].free[g] = 1000
		}
	}
	return states
}

func result(nodes []Node, placed int64, decisions int, start time.Time) Result {
	return Result{
		Unallocated: 100 * (1 - float64(placed)/float64(capacity(nodes))),
		Decisions:   decisions, Seconds: time.Since(start).Seconds(),
	}
}

package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// Demand is a frequently requested shape of kernels of a resource group, with its frequency.
// StrategyPack keeps space for the most frequent shapes.
type Demand struct {
	Group        uuid.UUID
	Slots        resource.Slots
	Architecture string   // empty: any
	Volumes      []string // must be mounted on the agent
	Weight       float64  // any unit, above 0
}

const (
	// maxDemands limits the shapes in a score to those with the largest weights.
	maxDemands = 256
	// wholePrior is the weight of a demand for a whole device in addition to the pending
	// requests: a queue says little about future requests.
	wholePrior = 0.25
)

// The weights of the score, fitted on the list `default` of openb (with seeds that are not in
// the reported results) and rounded.
const (
	weightCapacity  = 1.0    // of stranded capacity
	weightThreshold = 0.65   // of FGD's measure of it
	weightPrice     = 10.0   // of the packing value of devices
	weightShare     = 18.0   // of requests for a part of a device
	tieLeft         = 0.0014 // per remaining device: prefers fuller agents
)

// mixture is the demand of a group, prepared for scoring.
type mixture struct {
	kinds   []kind
	pooled  []int // slots that are requested in addition to devices
	hosts   map[uint64][]bool
	fits    map[uint64]*fit // by state of a device
	values  map[uint64][]float64
	states  map[uint64]value // by state of an agent
	scratch []*fit
	times   []float64
	free    []int64
}

// kind is one shape of demand. A copy of it needs `per` units, each on one device.
type kind struct {
	demand *Demand
	rate   float64 // frequency
	weight float64 // in the score; all sum to 1
	unit   []need  // needs on one device
	whole  bool    // the unit is a whole device
	per    float64
	pooled []need
}

// mixtureOf prepares the demand of a group on first use.
func (q *queue) mixtureOf(g *group) *mixture {
	if g.mixture == nil {
		g.mixture = q.c.mixture(q.demandOf(g))
	}
	return g.mixture
}

// demandOf returns the demand of a group in the snapshot, or else its pending requests.
func (q *queue) demandOf(g *group) []Demand {
	var list []Demand
	for i := range q.src.Demand {
		if q.src.Demand[i].Group == g.src.ID {
			list = append(list, q.src.Demand[i])
		}
	}
	if len(list) > 0 {
		return list
	}
	for i := range q.src.Pending {
		r := &q.src.Pending[i]
		for k := range r.Kernels {
			if r.Group == g.src.ID {
				list = append(list, Demand{g.src.ID, r.Kernels[k].Slots, r.Architecture, r.Volumes, 1})
			}
		}
	}
	prior := wholePrior * weightShare * float64(len(list))
	for n := range q.c.slots {
		if s := &q.c.slots[n]; s.family != "" && s.rule != pooled {
			if most := q.largest(g, n); most > 0 {
				list = append(list, Demand{Group: g.src.ID, Slots: resource.Slots{s.name: most}, Weight: prior})
			}
		}
	}
	return list
}

// largest returns the largest capacity of a slot on one device of the group.
func (q *queue) largest(g *group, slot int) (most int64) {
	for _, a := range g.agents {
		most = max(most, q.c.agents[a].most[slot])
	}
	return most
}

// mixture merges equal shapes and computes the fraction of every slot. It ignores shapes
// without accelerators, because they do not change a score.
func (c *cluster) mixture(list []Demand) *mixture {
	m := &mixture{
		hosts: map[uint64][]bool{}, fits: map[uint64]*fit{}, values: map[uint64][]float64{},
		states: map[uint64]value{}, free: make([]int64, len(c.slots)),
	}
	numbers := map[string]int{}
	for i := range list {
		d := &list[i]
		key := d.Architecture + "\x00" + d.Slots.String()
		for _, v := range d.Volumes {
			key += "\x00" + v
		}
		if n, ok := numbers[key]; ok {
			m.kinds[n].rate += d.Weight
		} else if k, ok := c.kindOf(d); ok {
			numbers[key] = len(m.kinds)
			m.kinds = append(m.kinds, k)
		}
	}
	slices.SortStableFunc(m.kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.demand.Slots.String(), b.demand.Slots.String()),
			cmp.Compare(a.demand.Architecture, b.demand.Architecture), slices.Compare(a.demand.Volumes, b.demand.Volumes))
	})
	m.kinds = m.kinds[:min(len(m.kinds), maxDemands)]
	sum := 0.0
	for i := range m.kinds {
		k := &m.kinds[i]
		k.weight = k.rate
		if !k.whole && k.unit[0].amount < c.slots[k.unit[0].slot].most {
			k.weight *= weightShare
		}
		sum += k.weight
		for _, n := range k.pooled {
			if !slices.Contains(m.pooled, n.slot) {
				m.pooled = append(m.pooled, n.slot)
			}
		}
	}
	for i := range m.kinds {
		m.kinds[i].weight /= sum
	}
	return m
}

// kindOf converts a shape; false if it requests no accelerator.
func (c *cluster) kindOf(d *Demand) (kind, bool) {
	k := kind{demand: d, rate: d.Weight, per: 1}
	for _, name := range d.Slots.Names() {
		if _, known := c.number[name]; !known {
			return kind{}, false
		}
	}
	needs, ok := c.needsOf(d.Slots)
	if !ok || d.Weight <= 0 {
		return kind{}, false
	}
	for _, st := range c.stepsOf(needs) {
		switch s := &c.slots[st.slot]; {
		case s.family == "":
			k.pooled = append(k.pooled, st.need)
		case k.unit != nil: // only the first accelerator counts
		case s.rule == whole || st.amount > s.most:
			k.unit, k.whole = []need{st.need}, true
			k.per = float64(st.amount) / float64(max(s.most, 1))
		default:
			k.unit = []need{st.need}
			if st.mate.amount > 0 {
				k.unit = append(k.unit, st.mate)
			}
		}
	}
	return k, k.unit != nil
}

// suits reports for every kind whether the agent can run it.
func (m *mixture) suits(a *agent) []bool {
	if list, ok := m.hosts[a.host]; ok {
		return list
	}
	list := make([]bool, len(m.kinds))
	for i := range list {
		d := m.kinds[i].demand
		list[i] = (d.Architecture == "" || d.Architecture == a.src.Architecture) && containsAll(a.src.Volumes, d.Volumes)
	}
	m.hosts[a.host] = list
	return list
}

const (
	grains     = 100 // a device has 100 steps
	maxSizes   = 24  // number of sizes with a price: the most frequent
	priceSteps = 60  // for each size
)

// sized is a demand for a part of a device: its size in grains, and its frequency.
type sized struct {
	grains int
	rate   float64
}

// valuesOf returns the value of every possible remainder of a device of this kind.
func (m *mixture) valuesOf(c *cluster, d *device) []float64 {
	if v, ok := m.values[d.kind]; ok {
		return v
	}
	empty := *d
	empty.used, empty.pool = make([]int64, len(d.used)), nil
	rates := map[int]float64{}
	for i := range m.kinds {
		k := &m.kinds[i]
		if k.whole {
			continue
		}
		if n, size := k.on(c, &empty); n > 0 && size < 1 {
			rates[int(math.Ceil(size*grains-1e-9))] += k.rate
		}
	}
	v := remainders(prices(rates))
	m.values[d.kind] = v
	return v
}

// priceOf returns the value of a free part of a device.
func priceOf(values []float64, left float64) float64 {
	return values[int(left*grains+1e-9)]
}

// prices solves the dual of the linear relaxation of bin packing (Gilmore and
// Gomory, "A linear programming approach to the cutting-stock problem", 1961)
// for sizes s that come at rates l:
//
//	max sum_s l_s p_s  subject to  sum_s n_s p_s <= 1 for every n that fits one device
//
// by projected subgradient steps, in which the best pattern n at the current
// prices is a knapsack. A price is the part of a device that a size uses up in
// the best packing of all of them: above its size where little fits beside it.
func prices(rates map[int]float64) []sized {
	var list []sized
	for g, l := range rates {
		list = append(list, sized{g, l})
	}
	slices.SortFunc(list, func(a, b sized) int {
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.grains, b.grains))
	})
	list = list[:min(len(list), maxSizes)]
	price := make([]sized, len(list)) // rate is used for the price
	mean := make([]sized, len(list))
	for i := range list {
		price[i] = sized{list[i].grains, float64(list[i].grains) / grains}
		mean[i].grains = list[i].grains
	}
	steps := priceSteps * len(list)
	for step := range steps {
		best, pattern := knapsack(price)
		sum := 0.0
		for i := range price {
			price[i].rate /= best[grains]
			sum += list[i].rate * price[i].rate
		}
		length := 0.05 / math.Sqrt(float64(step+1))
		for i := range price {
			if step >= steps/2 {
				mean[i].rate += price[i].rate
			}
			price[i].rate = max(0, price[i].rate+length*(list[i].rate/sum-float64(pattern[i])))
		}
	}
	if len(mean) > 0 {
		best, _ := knapsack(mean)
		for i := range mean {
			mean[i].rate /= best[grains]
		}
	}
	return mean
}

// remainders returns the best value of the sizes that fit each number of grains. Without
// sizes, only a whole device has a value.
func remainders(price []sized) []float64 {
	if len(price) == 0 {
		v := make([]float64, grains+1)
		v[grains] = 1
		return v
	}
	best, _ := knapsack(price)
	return best
}

// knapsack fills every number of grains with the sizes of the greatest value, and returns the
// number of each size on a whole device.
func knapsack(price []sized) (best []float64, pattern []int) {
	best = make([]float64, grains+1)
	var last [grains + 1]int
	for r := 1; r <= grains; r++ {
		best[r], last[r] = best[r-1], -1
		for i := range price {
			if g := price[i].grains; g <= r && best[r-g]+price[i].rate > best[r]+1e-12 {
				best[r], last[r] = best[r-g]+price[i].rate, i
			}
		}
	}
	pattern = make([]int, len(price))
	for r := grains; r > 0; {
		if last[r] < 0 {
			r--
			continue
		}
		pattern[last[r]]++
		r -= price[last[r]].grains
	}
	return best, pattern
}

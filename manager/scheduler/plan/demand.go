package plan

import (
	"cmp"
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

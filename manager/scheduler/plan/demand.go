package plan

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// Demand is a shape of kernels that a resource group is asked for, and how
// often. Packing keeps room for what is asked for most.
type Demand struct {
	Group        uuid.UUID
	Slots        resource.Slots
	Architecture string   // empty when any will do
	Volumes      []string // must be mounted on the agent
	Weight       float64  // any unit, above 0
}

const (
	// maxDemands bounds the shapes that a score looks at: the heaviest.
	maxDemands = 256
	// wholePrior is the weight, beside that of the pending requests for parts,
	// of one for a whole device: a queue says little about what will come.
	wholePrior = 0.25
)

// The weights of the score, fitted on the list `default` of openb alone (seeds
// other than those reported) and rounded.
const (
	weightCapacity  = 1.0    // of stranded capacity
	weightThreshold = 0.65   // of FGD's measure of it
	weightPrice     = 10.0   // of the packing value of devices
	weightShare     = 18.0   // of requests for a part of a device, in the mixture
	tieLeft         = 0.0014 // per device left: fuller agents first
)

// mixture is the demand of a group, ready for scoring.
type mixture struct {
	kinds   []kind
	pooled  []int // slots that kinds ask for beside devices
	hosts   map[uint64][]bool
	fits    map[uint64]*fit // by state of a device
	values  map[uint64][]float64
	states  map[uint64]value // by state of an agent
	scratch []*fit
	times   []float64
	free    []int64
}

// kind is one shape of demand. Its copies take units, which sit on one device
// each, and per units make a copy.
type kind struct {
	demand *Demand
	rate   float64 // how often it comes
	weight float64 // in the score; all sum to 1
	unit   []need  // of one device
	whole  bool    // the unit is an idle device
	per    float64
	pooled []need
}

// mixtureOf compiles the demand of a group when it is first needed.
func (q *queue) mixtureOf(g *group) *mixture {
	if g.mixture == nil {
		g.mixture = q.c.mixture(q.demandOf(g))
	}
	return g.mixture
}

// demandOf is what the snapshot says of a group, else what is pending there.
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

// largest is the most that one device of the group has of a slot.
func (q *queue) largest(g *group, slot int) (most int64) {
	for _, a := range g.agents {
		most = max(most, q.c.agents[a].most[slot])
	}
	return most
}

// mixture merges equal shapes and gives every slot its part in them. Shapes
// without accelerators change no score: what they leave is not an accelerator's.
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

// kindOf splits a shape; false when it asks for no accelerator.
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
		case k.unit != nil: // only the first accelerator decides
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

// suits tells for every kind whether the agent may run it at all.
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

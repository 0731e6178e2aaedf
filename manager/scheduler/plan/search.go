package plan

import (
	"math"
	"slices"
)

// maxSearch limits the states of a search. Beyond it, a kernel counts as not fitting. A
// machine of 8 devices with 7 partitions each stays far below, because equal states are
// examined once.
const maxSearch = 4096

// search finds devices for all steps if choosing the best for each has failed: a device that
// shares hardware can block others, and the chosen devices can be too far from each other.
type search struct {
	c     *cluster
	agent int
	steps []step
	mark  int
	seen  map[searched]bool
}

// searched is a state in which the remaining steps do not fit.
type searched struct {
	step       int
	left, mate int64
	key        uint64
}

// searches reports whether a search can find devices that the choice step by step has missed.
func (c *cluster) searches(a int) bool { return c.agents[a].pools != nil || c.agents[a].limit > 0 }

func (c *cluster) search(a int, steps []step, mark int) bool {
	c.rollback(mark)
	for i := range steps {
		if c.leftOf(a, steps[i].slot) < steps[i].amount {
			return false // not enough in total
		}
	}
	if c.overdraws(a, steps) {
		return false
	}
	s := &search{c: c, agent: a, steps: steps, mark: mark, seen: map[searched]bool{}}
	return s.from(-1, 0, 0)
}

// leftOf returns the sum of a slot's free amounts on the devices of an agent, ignoring shared
// hardware. The sums of the agent are those from before the search.
func (c *cluster) leftOf(a, slot int) (sum int64) {
	for i := range c.agents[a].devices {
		sum += max(c.available(&c.agents[a].devices[i], slot), 0)
	}
	return sum
}

// overdraws reports whether the idle devices that the steps need exceed the shared counters of
// an agent, even if each step gets the devices with the smallest draws.
func (c *cluster) overdraws(a int, steps []step) bool {
	left, devices := int64(0), c.agents[a].devices
	for _, p := range c.agents[a].pools {
		if p.off {
			return false
		}
		for i := range p.counters {
			if n := &p.counters[i]; !n.apart() {
				left += max(n.capacity-n.drawn, 0)
			}
		}
	}
	for i := range steps {
		slot := steps[i].slot
		if c.slots[slot].rule != whole {
			continue
		}
		most, least := int64(0), int64(math.MaxInt64)
		for j := range devices {
			if d := &devices[j]; d.capacity[slot] > 0 && d.idle() {
				most, least = max(most, d.capacity[slot]), min(least, d.drawn())
			}
		}
		if most > 0 {
			left -= (steps[i].amount + most - 1) / most * least
		}
	}
	return left < 0
}

// from takes the rest of a step, and all steps after it.
func (s *search) from(i int, left, mate int64) bool {
	if left == 0 && mate > 0 {
		return false
	}
	if left == 0 {
		if i++; i == len(s.steps) {
			return s.c.near(s.agent, s.steps, s.mark)
		}
		left, mate = s.steps[i].amount, s.steps[i].mate.amount
	}
	state := searched{i, left, mate, s.c.agents[s.agent].key}
	if s.seen[state] || len(s.seen) == maxSearch {
		return false
	}
	st, mark := &s.steps[i], len(s.c.taken)
	if take := s.plain(st); take != nil {
		if take(s.agent, st) && s.from(i, 0, 0) {
			return true
		}
		s.c.rollback(mark)
	} else {
		for _, d := range s.candidates(st, left, mate) {
			rest := mate
			n := s.c.takeBoth(s.agent, d, st, left, &rest)
			if s.from(i, left-n, rest) {
				return true
			}
			s.c.rollback(mark)
		}
	}
	s.seen[state] = true
	return false
}

// plain returns the function for a step that does not depend on the choice of devices.
func (s *search) plain(st *step) func(int, *step) bool {
	a := &s.c.agents[s.agent]
	if s.c.slots[st.slot].rule == pooled && !slices.ContainsFunc(a.devices, func(d device) bool {
		return d.pool != nil && d.capacity[st.slot] > 0
	}) {
		return s.c.takePooled
	}
	if s.c.slots[st.slot].rule == part && st.amount > a.most[st.slot] && a.split == SplitEvenly {
		return s.c.takeEvenly
	}
	return nil
}

// candidates returns the devices for the next part of a step, one of each state, those that
// share the least hardware first.
func (s *search) candidates(st *step, left, mate int64) []int {
	type state struct{ device, pool uint64 }
	a := &s.c.agents[s.agent]
	seen := map[state]bool{}
	lost := map[int]int64{}
	var list []int
	for i := range a.devices {
		d := &a.devices[i]
		of := state{device: d.key}
		if d.pool != nil {
			of.pool = d.pool.key
		}
		if seen[of] || !s.suits(st, d, left, mate) {
			continue
		}
		seen[of] = true
		if d.pool != nil {
			lost[i] = d.lost()
		}
		list = append(list, i)
	}
	slices.SortStableFunc(list, func(x, y int) int { return int(lost[x] - lost[y]) })
	return list
}

// suits reports whether a device can provide the next part of a step.
func (s *search) suits(st *step, d *device, left, mate int64) bool {
	a, most := &s.c.agents[s.agent], s.c.agents[s.agent].most[st.slot]
	switch rule := s.c.slots[st.slot].rule; {
	case rule == pooled:
		return s.c.available(d, st.slot) > 0
	case rule == whole || st.amount > most && left >= most:
		n := d.capacity[st.slot]
		return n > 0 && n <= left && d.idle()
	case st.amount > most && a.split == SplitNone:
		return false
	}
	return s.c.available(d, st.slot) >= left && (mate == 0 || s.c.available(d, st.mate.slot) >= mate)
}

// value is the value of an agent's free accelerators, in devices: the higher, the more of the
// demand they can serve.
type value struct {
	worth float64
	left  float64 // free amount in devices, usable or not
}

// fit is how many units of every kind the free part of a device can take.
type fit struct {
	left  float64 // free fraction of the device
	price float64 // its value at the prices of packing
	count []float64
	size  []float64 // of one unit, in devices
}

// worth is minus the expected stranding of the agent's state n plus its packing
// value. With weights w_k over the kinds k of demand that sum to 1,
//
//	usable_k(n)    = copies_k(n) * size_k, where copies_k is limited by devices, cpu and mem
//	threshold_k(n) = sum of left_d over the devices d that can take a unit of k, 0 if n cannot take k
//	worth(n)       = sum_k w_k (a usable_k + b threshold_k) - (a + b) left(n) + c sum_d price(d)
//
// threshold is the measure of FGD ("Beware of Fragmentation: Scheduling
// GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC'23,
// section 3). It takes a remainder for useful as a whole if one unit fits;
// usable counts how much of it units can fill.
func (m *mixture) worth(c *cluster, a *agent) value {
	if v, ok := m.states[a.key]; ok {
		return v
	}
	v := m.look(c, a)
	v.worth -= (weightCapacity + weightThreshold) * v.left
	suits := m.suits(a)
	for i := range m.kinds {
		k := &m.kinds[i]
		if !suits[i] {
			continue
		}
		units, usable, threshold := 0.0, 0.0, 0.0
		for j, f := range m.scratch {
			if n := f.count[i]; n > 0 {
				units += m.times[j] * n
				usable += m.times[j] * n * f.size[i]
				threshold += m.times[j] * f.left
			}
		}
		copies := units
		if k.per != 1 {
			copies = math.Floor(units / k.per)
		}
		for _, n := range k.pooled {
			if free := float64(m.free[n.slot]); copies*float64(n.amount) > free {
				copies = math.Floor(free / float64(n.amount))
			}
		}
		if copies >= 1 {
			v.worth += k.weight * (weightCapacity*usable*copies*k.per/units + weightThreshold*threshold)
		}
	}
	m.states[a.key] = v
	return v
}

// look fills scratch with the devices that are not full, one of each state, and free with the
// other amounts.
func (m *mixture) look(c *cluster, a *agent) (v value) {
	for _, s := range m.pooled {
		m.free[s] = 0
	}
	m.scratch, m.times = m.scratch[:0], m.times[:0]
	for i := range a.devices {
		d := &a.devices[i]
		if d.family == "" {
			for _, s := range m.pooled {
				m.free[s] += c.available(d, s)
			}
			continue
		}
		if d.pool != nil && d.blocked() {
			continue
		}
		f := m.fit(c, d)
		if f.left == 0 {
			continue
		}
		v.left += f.left
		v.worth += weightPrice * f.price
		if n := len(m.scratch); n > 0 && m.scratch[n-1] == f {
			m.times[n-1]++
			continue
		}
		m.scratch, m.times = append(m.scratch, f), append(m.times, 1)
	}
	return v
}

// fit evaluates a device, once for each of its states.
func (m *mixture) fit(c *cluster, d *device) *fit {
	if f, ok := m.fits[d.key]; ok {
		return f
	}
	f := &fit{count: make([]float64, len(m.kinds)), size: make([]float64, len(m.kinds))}
	m.fits[d.key] = f
	f.left = c.left(d)
	if f.left == 0 {
		return f
	}
	for i := range m.kinds {
		k := &m.kinds[i]
		f.count[i], f.size[i] = k.on(c, d)
	}
	f.price = priceOf(m.valuesOf(c, d), f.left)
	return f
}

// left returns the free fraction of a device, by the slot with the highest usage.
func (c *cluster) left(d *device) float64 {
	left, unified := 1.0, 1.0
	for s, most := range d.capacity {
		if most <= 0 {
			continue
		}
		used := float64(d.used[s]) / float64(most)
		left = min(left, 1-used)
		if c.slots[s].unified {
			unified -= used
		}
	}
	if !d.usable {
		return 0
	}
	return max(min(left, unified), 0)
}

// on returns the number of units of a kind that a device can take, and the size of one.
func (k *kind) on(c *cluster, d *device) (count, size float64) {
	if k.whole {
		if n := d.capacity[k.unit[0].slot]; n > 0 && d.idle() {
			return 1, 1
		}
		return 0, 0
	}
	count = math.Inf(1)
	for _, n := range k.unit {
		if d.capacity[n.slot] < n.amount {
			return 0, 0
		}
		count = min(count, float64(c.available(d, n.slot)/n.amount))
		if c.slots[n.slot].exclude[n.slot] {
			count = min(count, 1)
		}
		size = max(size, float64(n.amount)/float64(d.capacity[n.slot]))
	}
	return count, size
}

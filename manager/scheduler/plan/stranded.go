package plan

import "math"

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

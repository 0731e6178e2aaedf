package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/berthhq/berth/internal/resource"
)

// Partitions of a device are separate devices that share its hardware with each other and with
// the device itself. Each uses amounts of shared counters, once, while any of it is in use; a
// device cannot be taken if a counter would be exceeded. A device and its partitions, on any
// level, are never in use together: in addition to the counters of the plugin, a device uses
// all of a counter of which each of its partitions uses one.

// pool is hardware that some devices of an agent share: devices that are connected by common
// counters.
type pool struct {
	counters []counter
	devices  []*device
	key      uint64 // key of the state of its devices
	off      bool   // ignored, to find out whether anything else prevents a placement
}

type counter struct {
	name     counterName
	rank     int // order of its set in the pool
	capacity int64
	drawn    int64
}

type counterName struct{ set, name string }

// draw is the amount of a counter that a device uses.
type draw struct {
	counter int
	amount  int64
}

// has reports whether the pool's counters allow the draws, this many times, in addition to
// those in use.
func (p *pool) has(draws []draw, times int64) bool {
	for _, w := range draws {
		if n := &p.counters[w.counter]; times*w.amount > n.capacity-n.drawn {
			return p.off
		}
	}
	return true
}

// charge adds or subtracts the draws of a device in use.
func (p *pool) charge(d *device, sign int64) {
	if d.busy() {
		p.draw(d.draws, sign)
	}
}

func (p *pool) draw(draws []draw, sign int64) {
	for _, w := range draws {
		p.counters[w.counter].drawn += sign * w.amount
	}
}

// blocked reports whether the use of other devices prevents the use of a device, or its
// further use if a counter is exceeded.
func (d *device) blocked() bool {
	if d.busy() {
		return !d.pool.has(d.draws, 0)
	}
	return !d.pool.has(d.draws, 1)
}

// role returns the part of a device's draws that distinguishes it from others of its kind: the
// names of sets differ between equal devices, so only their order counts.
func (d *device) role() (sum uint64) {
	for _, w := range d.draws {
		n := &d.pool.counters[w.counter]
		sum += mix(mixText(n.name.name) + mix(uint64(w.amount)+mix(uint64(n.capacity)+mix(uint64(n.rank+1)))))
	}
	return sum
}

// lost returns the capacity of other devices in the pool that can be taken now, but could not
// beside this one: thousandths of the counters that they use.
func (d *device) lost() (sum int64) {
	if d.busy() {
		return 0
	}
	p := d.pool
	for _, e := range p.devices {
		if e == d || !e.idle() {
			continue
		}
		p.draw(d.draws, 1)
		gone := !p.has(e.draws, 1)
		p.draw(d.draws, -1)
		if gone {
			for _, w := range e.draws {
				sum += 1 + 1000*w.amount/max(p.counters[w.counter].capacity, 1)
			}
		}
	}
	return sum
}

// share finds the pools of an agent. Most agents have none.
func (a *agent) share() {
	if !slices.ContainsFunc(a.src.Devices, func(d Device) bool { return len(d.Consumes) > 0 || d.Parent != "" }) {
		return
	}
	draws := a.drawn()
	in := make([]int, len(a.devices)) // the number of the pool of each device
	for i := range in {
		in[i] = i
	}
	first := map[counterName]int{}
	for i := range draws {
		for name := range draws[i] {
			if j, ok := first[name]; ok {
				unite(in, in[i], in[j])
			} else {
				first[name] = i
			}
		}
	}
	pools := map[int]*pool{}
	for i := range a.devices {
		if len(draws[i]) == 0 {
			continue
		}
		p := pools[in[i]]
		if p == nil {
			p = &pool{}
			pools[in[i]] = p
			a.pools = append(a.pools, p)
		}
		p.devices = append(p.devices, &a.devices[i])
		a.devices[i].pool = p
	}
	for _, p := range a.pools {
		p.count(a, draws)
	}
}

// unite merges two pools.
func unite(in []int, a, b int) {
	for i := range in {
		if in[i] == b {
			in[i] = a
		}
	}
}

// above is the prefix of the sets that keep devices and their partitions apart: one set, with
// one counter, for every device with partitions.
const above = "\x00"

// apart reports whether the counter is one of those.
func (n *counter) apart() bool { return strings.HasPrefix(n.name.set, above) }

// drawn returns the sum of a device's draws from counters of its plugin.
func (d *device) drawn() (sum int64) {
	for _, w := range d.draws {
		if !d.pool.counters[w.counter].apart() {
			sum += w.amount
		}
	}
	return sum
}

// drawn returns the draws of each device, by name of the counter.
func (a *agent) drawn() []map[counterName]int64 {
	src := a.src.Devices
	at := map[string]int{}
	for i := range src {
		if src[i].Name != "" {
			at[src[i].Name] = i
		}
	}
	draws := make([]map[counterName]int64, len(src))
	for i := range src {
		draws[i] = map[counterName]int64{}
		for _, use := range src[i].Consumes {
			for name, n := range use.Amounts {
				if n > 0 {
					draws[i][counterName{use.Set, name}] += n
				}
			}
		}
	}
	for i := range src {
		up, known := at[src[i].Parent]
		for level := 0; known && up != i && level < len(src); level++ {
			set := counterName{above + src[up].Name, ""}
			draws[i][set] = 1
			draws[up][set]++
			up, known = at[src[up].Parent]
		}
	}
	return draws
}

// count creates the pool's counters, in the same order for equal agents.
func (p *pool) count(a *agent, draws []map[counterName]int64) {
	capacity := map[counterName]int64{}
	for i := range a.devices {
		if a.devices[i].pool != p {
			continue
		}
		for name, n := range draws[i] {
			if strings.HasPrefix(name.set, above) {
				capacity[name] = max(capacity[name], n)
			} else {
				capacity[name] = a.src.Counters[name.set][name.name]
			}
		}
	}
	number := map[counterName]int{}
	for i, name := range slices.SortedFunc(maps.Keys(capacity), counterName.compare) {
		n := counter{name: name, capacity: capacity[name]}
		if i > 0 {
			n.rank = p.counters[i-1].rank
			if p.counters[i-1].name.set != name.set {
				n.rank++
			}
		}
		number[name] = i
		p.counters = append(p.counters, n)
	}
	for i := range a.devices {
		if a.devices[i].pool != p {
			continue
		}
		for name, n := range draws[i] {
			a.devices[i].draws = append(a.devices[i].draws, draw{number[name], n})
		}
	}
}

func (n counterName) compare(o counterName) int {
	return cmp.Or(cmp.Compare(n.set, o.set), cmp.Compare(n.name, o.name))
}

// apart runs do as if no hardware of an agent was shared.
func (c *cluster) apart(a int, do func() bool) bool {
	for _, p := range c.agents[a].pools {
		p.off = true
		defer func() { p.off = false }()
	}
	return do()
}

// crowded returns the slot of a kernel that does not fit on an agent only because devices
// share hardware, or -1.
func (c *cluster) crowded(a int, s *shape) int {
	if c.agents[a].pools == nil {
		return -1
	}
	fits := func() bool { return c.hasRoom(a, s.steps) }
	if fits() || !c.apart(a, fits) {
		return -1
	}
	for _, n := range s.needs {
		if c.agents[a].free[n.slot] < n.amount {
			return n.slot
		}
	}
	return s.steps[len(s.steps)-1].slot
}

// The unified slots of a device are several names for the same capacity: an amount that is
// taken under one name reduces the others. A unit under one name is worth the same fraction of
// the capacity under another, so the used fractions under all names add up to at most one
// device. Usage under another name is rounded up to a unit of this one.

// unifiedLeft returns the free amount of a unified slot after the usage under all names.
func (c *cluster) unifiedLeft(d *device, s int) int64 {
	free := d.capacity[s] - d.used[s]
	for t, used := range d.used {
		if t != s && used > 0 && c.slots[t].unified {
			free -= resource.Part(used, d.capacity[t], d.capacity[s])
		}
	}
	return max(free, 0)
}

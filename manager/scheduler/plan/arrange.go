package plan

import (
	"cmp"
	"math"
	"slices"
)

// How many sets of devices are compared one by one: all sets of 4 of 16 devices.
// Beyond that, those are compared that grow around each of the first maxSeeds
// devices by the nearest one at a time.
const (
	maxArrangements = 2000
	maxSeeds        = 64
)

// arrangement looks for the devices that a kernel had better take instead of
// others in the same state.
type arrangement struct {
	c      *cluster
	agent  *agent
	near   *topology
	host   []need // what the kernel wants of cpu and memory
	chosen []int  // the accelerators that it took
	groups []alike
	idle   []int
	picked []int // of the groups in turn
	best   []int // the same, of the best set so far; nil: none
	cost   cost
}

// alike are devices in one state, of which some are to be picked.
type alike struct {
	devices []int
	pick    int
}

// cost orders sets of devices.
type cost struct {
	far   int64   // between them
	spill float64 // the part of cpu and memory that their NUMA nodes lack
	torn  int64   // how near they are to what stays idle
}

func (x cost) compare(y cost) int {
	return cmp.Or(cmp.Compare(x.far, y.far), cmp.Compare(x.spill, y.spill), cmp.Compare(x.torn, y.torn))
}

// arrange gives a kernel, of the devices in the same state as those that it took
// since mark, the ones that are nearest to each other; of equally near ones those
// whose NUMA nodes have the most of the cpu and memory that it wants, then those
// that are farthest from what stays idle. Its cpu and memory come from these
// nodes as far as they have it. It tells how far the devices are from the nearest
// that as many could be.
func (c *cluster) arrange(a int, steps []step, mark int) int64 {
	taken := slices.Clone(c.taken[mark:])
	c.rollback(mark)
	p := &arrangement{c: c, agent: &c.agents[a], near: c.topologyOf(&c.agents[a])}
	for i := range steps {
		if c.slots[steps[i].slot].family == "" {
			p.host = append(p.host, steps[i].need)
		}
	}
	place := p.search(taken)
	var nodes []int
	for _, d := range place {
		nodes = p.near.with(nodes, d)
	}
	if len(place) == 0 {
		nodes = p.roomy()
	}
	for i := range steps {
		if st := &steps[i]; c.slots[st.slot].family == "" {
			nodes = c.takeNear(a, st, nodes)
		}
	}
	for _, t := range taken {
		if c.slots[t.slot].family != "" {
			c.take(a, place[t.device], t.slot, t.amount)
		}
	}
	n := int64(len(p.chosen))
	return p.cost.far - n*(n-1)/2*int64(p.near.nearest)
}

// search finds the best devices instead of those taken, by these.
func (p *arrangement) search(taken []taking) map[int]int {
	for _, t := range taken {
		if p.c.slots[t.slot].family != "" && !slices.Contains(p.chosen, t.device) {
			p.chosen = append(p.chosen, t.device)
		}
	}
	for i := range p.agent.devices {
		if d := &p.agent.devices[i]; d.family != "" && d.idle() {
			p.idle = append(p.idle, i)
		}
	}
	p.group()
	if p.ways() <= maxArrangements {
		p.each(0, 0, 0, 0)
	} else {
		p.grow()
	}
	place := make(map[int]int, len(p.chosen))
	for i, d := range p.chosen {
		place[d] = p.best[i]
	}
	return place
}

// group sorts what was taken by state, and finds what is in the same. Where
// devices share hardware, only one of each such set can take another's place.
func (p *arrangement) group() {
	type state struct{ device, pool uint64 }
	of := func(d *device) state {
		if d.pool == nil {
			return state{d.key, 0}
		}
		return state{d.key, d.pool.key}
	}
	fixed := p.entangled()
	var chosen []int
	seen := map[state]bool{}
	for _, first := range p.chosen {
		d := &p.agent.devices[first]
		if fixed && d.pool != nil {
			chosen = append(chosen, first)
			p.groups = append(p.groups, alike{[]int{first}, 1})
			continue
		}
		if seen[of(d)] {
			continue
		}
		seen[of(d)] = true
		g := alike{}
		var pools []*pool
		for i := range p.agent.devices {
			e := &p.agent.devices[i]
			if of(e) != of(d) || e.pool != nil && slices.Contains(pools, e.pool) {
				continue
			}
			g.devices = append(g.devices, i)
			if e.pool != nil {
				pools = append(pools, e.pool)
			}
		}
		for _, i := range p.chosen {
			if of(&p.agent.devices[i]) == of(d) {
				chosen = append(chosen, i)
				g.pick++
			}
		}
		p.groups = append(p.groups, g)
	}
	p.chosen = chosen
}

// entangled reports whether the devices that share hardware stay as they are:
// unless all that were taken are alike and each is of a set of its own.
func (p *arrangement) entangled() bool {
	var pools []*pool
	var key uint64
	for _, i := range p.chosen {
		d := &p.agent.devices[i]
		if d.pool == nil {
			continue
		}
		if slices.Contains(pools, d.pool) || len(pools) > 0 && key != d.key+mix(d.pool.key) {
			return true
		}
		pools, key = append(pools, d.pool), d.key+mix(d.pool.key)
	}
	return false
}

// ways counts the sets, up to more than are compared one by one.
func (p *arrangement) ways() int {
	n := 1
	for _, g := range p.groups {
		ways := 1
		for i := range min(g.pick, len(g.devices)-g.pick) {
			if ways = ways * (len(g.devices) - i) / (i + 1); ways > maxArrangements {
				return ways
			}
		}
		if n *= ways; n > maxArrangements {
			return n
		}
	}
	return n
}

// each tries all sets that have what is picked, and k of group g so far, and no
// device of it before from.
func (p *arrangement) each(g, k, from int, far int64) {
	for g < len(p.groups) && k == p.groups[g].pick {
		g, k, from = g+1, 0, 0
	}
	if g == len(p.groups) {
		p.weigh(far)
		return
	}
	devices := p.groups[g].devices
	for i := from; i <= len(devices)-(p.groups[g].pick-k); i++ {
		sum := far + p.toPicked(devices[i])
		if p.best != nil && sum > p.cost.far {
			continue
		}
		p.picked = append(p.picked, devices[i])
		p.each(g, k+1, i+1, sum)
		p.picked = p.picked[:len(p.picked)-1]
	}
}

// tooFar outweighs all that devices can be from each other.
const tooFar = 1 << 40

// between is how far two devices are from each other, and more where that is more
// than the group allows.
func (p *arrangement) between(x, y int) int64 {
	far := int64(p.near.between(x, y))
	if limit := p.agent.limit; limit > 0 && far > int64(limit) {
		far += tooFar
	}
	return far
}

// toPicked is how far a device is from all that are picked.
func (p *arrangement) toPicked(d int) (sum int64) {
	for _, x := range p.picked {
		sum += p.between(x, d)
	}
	return sum
}

// weigh compares what is picked with the best so far.
func (p *arrangement) weigh(far int64) {
	c := cost{far: far, spill: p.spill(p.picked)}
	for _, x := range p.picked {
		if !slices.Contains(p.idle, x) {
			continue
		}
		for _, y := range p.idle {
			if !slices.Contains(p.picked, y) {
				c.torn += farthest - int64(p.near.between(x, y))
			}
		}
	}
	if p.best == nil || c.compare(p.cost) < 0 {
		p.best, p.cost = append(p.best[:0], p.picked...), c
	}
}

// grow compares sets that begin with one device and continue with the nearest.
func (p *arrangement) grow() {
	seeds := 0
	for g := range p.groups {
		for _, seed := range p.groups[g].devices {
			if seeds++; seeds <= maxSeeds {
				p.around(g, seed)
			}
		}
	}
}

func (p *arrangement) around(group, seed int) {
	sets := make([][]int, len(p.groups))
	far := make([]int64, p.near.n)
	add := func(g, d int) {
		sets[g] = append(sets[g], d)
		for i := range far {
			far[i] += p.between(d, i)
		}
	}
	add(group, seed)
	sum := int64(0)
	for range len(p.chosen) - 1 {
		next, of, least := -1, 0, int64(math.MaxInt64)
		for g := range p.groups {
			if len(sets[g]) == p.groups[g].pick {
				continue
			}
			for _, d := range p.groups[g].devices {
				if far[d] < least && !slices.Contains(sets[g], d) {
					next, of, least = d, g, far[d]
				}
			}
		}
		sum += least
		add(of, next)
	}
	p.picked = slices.Concat(sets...)
	p.weigh(sum)
}

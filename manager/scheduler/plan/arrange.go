package plan

import (
	"cmp"
	"math"
	"slices"
)

// Limits of the search for sets of devices. Up to maxSets, all sets are compared: this covers
// all sets of 4 of 16 devices. Beyond that, the search grows a set around each of the first
// maxSeeds devices by adding the nearest device.
const (
	maxArrangements = 2000
	maxSeeds        = 64
)

// arrangement chooses the best devices for a kernel among devices in the same state.
type arrangement struct {
	c      *cluster
	agent  *agent
	near   *topology
	host   []need // requested cpu and memory
	chosen []int  // accelerators that the kernel took
	groups []alike
	idle   []int
	picked []int // by group
	best   []int // the best set so far; nil: none
	cost   cost
}

// alike is a group of devices in the same state, of which some are to be picked.
type alike struct {
	devices []int
	pick    int
}

// cost orders sets of devices.
type cost struct {
	far   int64   // sum of distances between them
	spill float64 // fraction of cpu and memory that their NUMA nodes lack
	torn  int64   // nearness to the devices that stay idle
}

func (x cost) compare(y cost) int {
	return cmp.Or(cmp.Compare(x.far, y.far), cmp.Compare(x.spill, y.spill), cmp.Compare(x.torn, y.torn))
}

// arrange replaces the devices that a kernel took since mark by the best ones in the same
// states: those nearest to each other; among equally near ones, those whose NUMA nodes have
// the most of the requested cpu and memory, then those farthest from the devices that stay
// idle. It takes cpu and memory from these nodes if they have enough. It returns the
// difference between the distance of the chosen devices and the smallest possible one.
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

// search returns the best replacement for each taken device.
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

// group groups the taken devices by state, and finds the other devices in the same state.
// Devices that share hardware can only replace each other one per set.
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

// entangled reports whether devices that share hardware cannot be replaced: unless all taken
// devices are alike and belong to different sets.
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

// ways returns the number of sets, counted up to the limit for comparing all.
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

// each tries all sets that extend the picked devices, which include k devices of group g, with
// devices of it from index from.
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

// tooFar is larger than any sum of distances.
const tooFar = 1 << 40

// between returns the distance of two devices, or more than tooFar if the group does not allow
// it.
func (p *arrangement) between(x, y int) int64 {
	far := int64(p.near.between(x, y))
	if limit := p.agent.limit; limit > 0 && far > int64(limit) {
		far += tooFar
	}
	return far
}

// toPicked returns the sum of the distances from a device to all picked ones.
func (p *arrangement) toPicked(d int) (sum int64) {
	for _, x := range p.picked {
		sum += p.between(x, d)
	}
	return sum
}

// weigh compares the picked set with the best so far.
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

// grow compares sets that begin with one device and are extended by the nearest devices.
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

// spill returns the fraction of the requested cpu and memory that the NUMA nodes of some
// devices do not have.
func (p *arrangement) spill(devices []int) (sum float64) {
	for _, n := range p.host {
		left := n.amount
		for i := range p.agent.devices {
			if p.near.node[i] >= 0 && slices.ContainsFunc(devices, func(d int) bool { return p.near.node[d] == p.near.node[i] }) {
				left -= p.c.available(&p.agent.devices[i], n.slot)
			}
		}
		sum += float64(max(left, 0)) / float64(n.amount)
	}
	return sum
}

// roomy returns the first NUMA node that has all of the requested cpu and memory.
func (p *arrangement) roomy() []int {
	for i, node := range p.near.node {
		if node >= 0 && p.spill([]int{i}) == 0 {
			return []int{node}
		}
	}
	return nil
}

// takeNear is takePooled that prefers some NUMA nodes. It returns them or, without preference,
// the nodes that it took from.
func (c *cluster) takeNear(a int, st *step, nodes []int) []int {
	devices, near := c.agents[a].devices, c.topologyOf(&c.agents[a])
	left, from := st.amount, nodes
	for _, there := range []bool{true, false} {
		all := -1
		for i := range devices {
			if slices.Contains(nodes, near.node[i]) == there && c.available(&devices[i], st.slot) >= left {
				all = i
				break
			}
		}
		for i := range devices {
			if all >= 0 && i != all || slices.Contains(nodes, near.node[i]) != there {
				continue
			}
			if free := min(left, c.available(&devices[i], st.slot)); free > 0 {
				c.take(a, i, st.slot, free)
				left -= free
				from = near.with(from, i)
			}
		}
	}
	if len(nodes) > 0 {
		return nodes
	}
	return from
}

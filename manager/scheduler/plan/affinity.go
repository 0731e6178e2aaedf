package plan

import "slices"

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

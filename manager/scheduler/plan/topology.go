package plan

import (
	"math"
	"slices"

	"github.com/berthhq/berth/internal/report"
)

// topology is how far the accelerators of an agent are from each other. The cost of a pair is that
// of its nearest relation:
//
//	0   a direct fabric (NVLink, xGMI, on one chip), or parts of one device
//	1   one board, or a group that the plugin names
//	2   one PCIe root
//	4   one NUMA node
//	8   the same machine
//
// and, far below that, the distance that the plugin gives and the bandwidth that is missing to the
// fastest link of the agent. Unless its group says otherwise all of it is a preference: where
// devices lie never keeps a kernel from starting, and changes neither the agent that the strategy
// chooses nor the state that this is left in, for only devices in the same state change places.
type topology struct {
	n       int     // devices of the agent
	far     []int32 // n x n
	node    []int   // NUMA node, -1 where it is unknown
	nearest int32   // the least between two accelerators
}

// The unit of cost, and the maximum that distance and bandwidth add.
const (
	farStep   = 1 << 10
	longest   = 63 // of distance, in steps of 8
	slowest   = 7  // of bandwidth
	farOfLink = longest<<3 + slowest
	farthest  = 8*farStep + farOfLink
)

// Topology is the required nearness of a kernel's devices. Devices that are nearer than
// required are not preferred over others: two devices on different NUMA nodes with a direct
// link are near enough for every requirement.
type Topology string

// The topologies.
const (
	TopologyPrefer Topology = "prefer" // as near as possible; the default
	TopologyNode   Topology = "node"   // within one NUMA node
	TopologyRoot   Topology = "root"   // within one PCIe root
	TopologyLinked Topology = "linked" // with a direct link, or on a common device
)

// limit returns the largest cost of a pair; 0: no limit.
func (t Topology) limit() int32 {
	switch t {
	case TopologyNode:
		return 4*farStep + farOfLink
	case TopologyRoot:
		return 2*farStep + farOfLink
	case TopologyLinked:
		return farOfLink
	}
	return 0
}

// near moves the devices taken since mark to nearer ones in the same states, and reports
// whether they are as near to each other as the agent's group requires.
func (c *cluster) near(a int, steps []step, mark int) bool {
	if c.agents[a].limit == 0 {
		return true
	}
	taken := slices.Clone(c.taken[mark:])
	if c.arrange(a, steps, mark) < tooFar {
		return true
	}
	c.rollback(mark)
	for _, t := range taken {
		c.take(t.agent, t.device, t.slot, t.amount)
	}
	return false
}

// anywhere runs do as if the agent's group had no requirement.
func (c *cluster) anywhere(a int, do func() bool) bool {
	agent := &c.agents[a]
	limit := agent.limit
	agent.limit = 0
	defer func() { agent.limit = limit }()
	return do()
}

// scattered reports whether a kernel does not fit on an agent only because devices are too far
// from each other.
func (c *cluster) scattered(a int, s *shape) bool {
	fits := func() bool { return c.hasRoom(a, s.steps) }
	return c.agents[a].limit > 0 && !fits() && c.anywhere(a, fits)
}

// flat reports whether all devices of an agent are equally near, as far as known.
func flat(a *Agent) bool {
	for i := range a.Devices {
		if d := &a.Devices[i]; d.NUMANode != nil || d.PCIeRoot != "" || len(d.Groups) > 0 {
			return false
		}
	}
	return len(a.Links) == 0
}

// topologyOf returns the topology of an agent, computed on first use.
func (c *cluster) topologyOf(a *agent) *topology {
	if a.near == nil {
		a.near = newTopology(a)
	}
	return a.near
}

func newTopology(a *agent) *topology {
	n := len(a.devices)
	t := &topology{n: n, far: make([]int32, n*n), node: make([]int, n), nearest: math.MaxInt32}
	at := map[string]int{}
	for i := range a.devices {
		d := a.devices[i].src
		at[d.Name] = i
		t.node[i] = -1
		if d.NUMANode != nil {
			t.node[i] = *d.NUMANode
		}
	}
	for i := range a.devices {
		for j := range i {
			t.set(i, j, farStep*relation(a.devices[i].src, a.devices[j].src)+farOfLink)
		}
	}
	fastest := 0.0
	for i := range a.src.Links {
		fastest = max(fastest, a.src.Links[i].GBps)
	}
	for i := range a.src.Links {
		l := &a.src.Links[i]
		x, known := at[l.A]
		y, both := at[l.B]
		if known && both && x != y {
			t.set(x, y, min(t.between(x, y), farBy(l, fastest, t.between(x, y)/farStep)))
		}
	}
	for i := range a.devices {
		for j := range i {
			if a.devices[i].family != "" && a.devices[j].family != "" {
				t.nearest = min(t.nearest, t.between(i, j))
			}
		}
	}
	return t
}

// sum returns a hash of the topology.
func (t *topology) sum() (sum uint64) {
	for i, far := range t.far {
		sum = mix(sum + uint64(far)<<32 + uint64(i))
	}
	return sum
}

func (t *topology) between(i, j int) int32   { return t.far[i*t.n+j] }
func (t *topology) set(i, j int, cost int32) { t.far[i*t.n+j], t.far[j*t.n+i] = cost, cost }

// relation returns the cost of two devices without links.
func relation(a, b *Device) int32 {
	switch {
	case a.Parent != "" && (a.Parent == b.Parent || a.Parent == b.Name), b.Parent != "" && b.Parent == a.Name:
		return 0
	case common(a.Groups, b.Groups):
		return 1
	case a.PCIeRoot != "" && a.PCIeRoot == b.PCIeRoot:
		return 2
	case a.NUMANode != nil && b.NUMANode != nil && *a.NUMANode == *b.NUMANode:
		return 4
	}
	return 8
}

func common(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

// farBy returns the cost of a link between devices with a relation. A link over PCIe only
// orders pairs with the same relation.
func farBy(l *report.Link, fastest float64, relation int32) int32 {
	switch l.Type {
	case "nvlink", "xgmi", "noc":
		relation = 0
	case "same_board":
		relation = min(relation, 1)
	}
	cost := farStep*relation + int32(min(max(l.Distance, 0), longest))<<3
	if l.GBps > 0 {
		return cost + int32(slowest*(1-l.GBps/fastest))
	}
	return cost + slowest
}

// with adds the node of a device.
func (t *topology) with(nodes []int, d int) []int {
	if n := t.node[d]; n >= 0 && !slices.Contains(nodes, n) {
		nodes = append(nodes, n)
	}
	return nodes
}

package main

import (
	"path/filepath"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Types of links in KFD's topology.
const (
	linkPCIe = 2
	linkXGMI = 11
)

// topology caches the links between the GPUs. A machine of 64 partitions has 4000 links in as many
// files, which change only with KFD's generation number.
type topology struct {
	generation string
	found      map[[2]int]*pb.Link // by the numbers of the two nodes, the smaller first
}

// links returns the links between the shown devices.
func (m *machine) links(nodes []node, shown map[int]*pb.Device) []*pb.Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	generation := driver.Text(m.host.Sys("class/kfd/kfd/topology/generation_id"))
	if generation == "" || generation != m.joined.generation {
		m.joined = topology{generation, map[[2]int]*pb.Link{}}
		for _, n := range nodes {
			m.joined.read(n, "io_links")
			m.joined.read(n, "p2p_links")
		}
	}
	var all []*pb.Link
	for i, a := range nodes { // in the order of nodes, for a stable result
		for _, b := range nodes[i+1:] {
			l := m.joined.found[[2]int{a.number, b.number}]
			x, y := shown[a.number], shown[b.number]
			if l == nil || x == nil || y == nil {
				continue
			}
			all = append(all, &pb.Link{
				A: x.Id, B: y.Id, Type: l.Type, Gbps: l.Gbps, P2P: l.P2P, Distance: distance(l.Type, a, b, x, y),
			})
		}
	}
	return all
}

func (t topology) read(n node, kind string) {
	for _, name := range driver.Names(n.dir, kind) {
		p, err := properties(filepath.Join(n.dir, kind, name), "type", "node_to")
		if err != nil || p["node_to"] > 1<<20 {
			continue // a link that cannot be read is omitted
		}
		l := &pb.Link{Gbps: float64(min(p["max_bandwidth"], 1<<32)) * 8 / 1000, P2P: true} // in MB/s
		switch p["type"] {
		case linkXGMI:
			l.Type = pb.Link_XGMI
		case linkPCIe:
			l.Type = pb.Link_PCIE
		default:
			continue
		}
		key := [2]int{n.number, int(p["node_to"])}
		if key[0] > key[1] {
			key[0], key[1] = key[1], key[0]
		}
		if old := t.found[key]; old == nil || old.Type != pb.Link_XGMI {
			t.found[key] = l
		}
	}
}

// distance weighs a pair like AMD's cluster scheduler: by the type of the link, the card and the
// NUMA node.
func distance(way pb.Link_Type, a, b node, x, y *pb.Device) uint32 {
	d := uint32(40)
	if way == pb.Link_XGMI {
		d = 10
	}
	if a.address == b.address || x.Serial != "" && x.Serial == y.Serial {
		d += 10
	} else {
		d += 20
	}
	if x.NumaNode != nil && y.NumaNode != nil && x.GetNumaNode() == y.GetNumaNode() {
		return d + 10
	}
	return d + 20
}

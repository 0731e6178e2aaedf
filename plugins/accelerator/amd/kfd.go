package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// node is a GPU or a partition as listed by the kernel's compute driver (KFD).
type node struct {
	number  int    // in the order in which programs number them
	gpuID   uint64 // identifies it in the statistics of processes; 0 = unknown
	address string // of the PCI function
	part    uint64 // number of the partition of the function
	minor   uint64 // of its render node
	version uint64 // gfx_target_version
	units   uint64 // compute units
	xcc     uint64 // accelerated compute dies
	hive    uint64 // of GPUs connected by xGMI, 0 = none
	memory  uint64
	dir     string
}

func (n node) render() string { return fmt.Sprintf("dri/renderD%d", n.minor) }

// kfd returns the GPUs, and the errors of nodes that cannot be read.
func (m *machine) kfd() (nodes []node, broken map[int]error) {
	broken = map[int]error{}
	root := m.host.Sys("class/kfd/kfd/topology/nodes")
	for _, name := range driver.Names(root) {
		number, err := strconv.Atoi(name)
		if err != nil || number < 0 {
			continue
		}
		dir := filepath.Join(root, name)
		id, _ := driver.Uint(dir, "gpu_id")
		n, err := readNode(dir)
		switch {
		case err != nil && id != 0:
			broken[number] = err
		case err == nil && n != nil:
			n.number, n.gpuID = number, id
			nodes = append(nodes, *n)
		}
	}
	return nodes, broken
}

// readNode reads a GPU. It returns nil for a processor.
func readNode(dir string) (*node, error) {
	p, err := properties(dir, "simd_count")
	if err != nil {
		return nil, err
	}
	if p["simd_count"] == 0 {
		return nil, nil
	}
	for _, key := range []string{"simd_per_cu", "drm_render_minor", "location_id", "gfx_target_version"} {
		if _, ok := p[key]; !ok {
			return nil, fmt.Errorf("properties has no number %s", key)
		}
	}
	if p["drm_render_minor"] < 128 || p["drm_render_minor"] > 1<<20-1 || p["simd_per_cu"] == 0 {
		return nil, fmt.Errorf("properties has render node %d and %d SIMD units per compute unit", p["drm_render_minor"], p["simd_per_cu"])
	}
	at := p["location_id"]
	return &node{
		address: fmt.Sprintf("%04x:%02x:%02x.0", p["domain"]&0xffffffff, at>>8&0xff, at>>3&0x1f),
		// Newer kernels number the partitions of a function in the highest four bits, older ones in
		// the function number.
		part: at>>28&0xf | at&7, minor: p["drm_render_minor"], version: p["gfx_target_version"],
		units: p["simd_count"] / p["simd_per_cu"], xcc: max(p["num_xcc"], 1), hive: p["hive_id"],
		memory: banks(dir), dir: dir,
	}, nil
}

// banks returns the total memory of a node.
func banks(dir string) (sum uint64) {
	for _, bank := range driver.Names(dir, "mem_banks") {
		p, err := properties(filepath.Join(dir, "mem_banks", bank), "size_in_bytes", "heap_type")
		if own := p["heap_type"] == 1 || p["heap_type"] == 2; err == nil && own {
			sum += p["size_in_bytes"]
		}
	}
	return sum
}

// properties reads lines with a name and a number. It returns an error if one of those in want is
// missing.
func properties(dir string, want ...string) (map[string]uint64, error) {
	text, err := driver.Read(dir, "properties")
	if err != nil {
		return nil, err
	}
	all := map[string]uint64{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			all[key] = n
		}
	}
	for _, key := range want {
		if _, ok := all[key]; !ok {
			return nil, fmt.Errorf("properties has no number %s", key)
		}
	}
	return all, nil
}

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

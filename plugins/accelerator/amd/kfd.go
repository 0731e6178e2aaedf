package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// node is a GPU, or a partition of one, as the kernel's compute driver (KFD)
// lists it.
type node struct {
	number  int    // in the order in which programs count
	gpuID   uint64 // names it in the statistics of processes; 0 = unknown
	address string // of the PCI function
	part    uint64 // which partition of the function
	minor   uint64 // of its render node
	version uint64 // gfx_target_version
	units   uint64 // compute units
	xcc     uint64 // accelerated compute dies
	hive    uint64 // of GPUs joined by xGMI, 0 = none
	memory  uint64
	dir     string
}

func (n node) render() string { return fmt.Sprintf("dri/renderD%d", n.minor) }

// kfd lists the GPUs, and what is wrong with those that cannot be read.
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

// readNode reads a GPU; a processor is nil.
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
		return nil, fmt.Errorf("properties says render node %d and %d SIMD units a compute unit", p["drm_render_minor"], p["simd_per_cu"])
	}
	at := p["location_id"]
	return &node{
		address: fmt.Sprintf("%04x:%02x:%02x.0", p["domain"]&0xffffffff, at>>8&0xff, at>>3&0x1f),
		// Kernels tell partitions of one function apart in the highest four bits, older
		// ones in the function's.
		part: at>>28&0xf | at&7, minor: p["drm_render_minor"], version: p["gfx_target_version"],
		units: p["simd_count"] / p["simd_per_cu"], xcc: max(p["num_xcc"], 1), hive: p["hive_id"],
		memory: banks(dir), dir: dir,
	}, nil
}

// banks sums the memory of a node that is its own.
func banks(dir string) (sum uint64) {
	for _, bank := range driver.Names(dir, "mem_banks") {
		p, err := properties(filepath.Join(dir, "mem_banks", bank), "size_in_bytes", "heap_type")
		if own := p["heap_type"] == 1 || p["heap_type"] == 2; err == nil && own {
			sum += p["size_in_bytes"]
		}
	}
	return sum
}

// properties reads lines of a name and a number; those wanted must be there.
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

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// The three slots of one GPU: whole, by thousandths, by bytes.
const (
	whole  = "cuda.device"
	shares = "cuda.shares"
	memory = "cuda.mem"
)

func slots(c config) []*pb.SlotType {
	list := []*pb.SlotType{{
		Name: whole, Kind: pb.SlotType_COUNT, DisplayName: "GPU", Unit: "GPU", Icon: "nvidia",
		Description: "Whole NVIDIA GPU", ExclusiveWith: []string{shares, memory},
	}}
	if !c.Fractions {
		return list
	}
	return append(list, c.shareSlot(), &pb.SlotType{
		Name: memory, Kind: pb.SlotType_BYTES, Quantum: "1048576", DisplayName: "GPU memory", Unit: "GiB", Icon: "nvidia",
		Description: "Part of an NVIDIA GPU by its memory", ExclusiveWith: []string{whole}, Unified: true,
	})
}

func migSlot(profile string) *pb.SlotType {
	return &pb.SlotType{
		Name: migName(profile), Kind: pb.SlotType_UNIQUE, DisplayName: "GPU (MIG)", Unit: "GPU", Icon: "nvidia",
		Description: "Hardware partition of an NVIDIA GPU",
	}
}

func migName(profile string) string { return whole + ":" + profile + "-mig" }

// render adds the found GPUs to the snapshot.
func (m *machine) render(s *pb.DeviceSnapshot, found []*gpu) {
	slices.SortStableFunc(found, func(a, b *gpu) int {
		return cmp.Or(cmp.Compare(a.pci, b.pci), cmp.Compare(a.profile, b.profile), cmp.Compare(a.id, b.id))
	})
	profiles := map[string]bool{}
	for _, g := range found {
		s.Devices = append(s.Devices, m.device(g))
		if g.mig && !slices.ContainsFunc(s.Counters, func(c *pb.CounterSet) bool { return c.GetName() == g.id }) {
			s.Counters = append(s.Counters, &pb.CounterSet{Name: g.id, Counters: g.slices})
		}
		if g.profile != "" && !profiles[g.profile] {
			profiles[g.profile] = true
			s.Slots = append(s.Slots, migSlot(g.profile))
		}
	}
	slices.SortFunc(s.Slots, func(a, b *pb.SlotType) int { return cmp.Compare(a.GetName(), b.GetName()) })
	s.Links = links(found)
}

// direct records whether the driver's modules let network cards (dma-buf, which only the open ones
// have) and file systems reach the memory of GPUs.
// Source: GPUDirect RDMA and GPUDirect Storage documentation of NVIDIA.
func (m *machine) direct(d *pb.Device) {
	d.Attributes["dma_buf"] = strconv.FormatBool(strings.Contains(driver.Text(m.Proc("driver/nvidia/version")), "Open Kernel Module"))
	d.Attributes["gpudirect_storage"] = strconv.FormatBool(driver.Exists(m.Sys("module/nvidia_fs")))
}

func (m *machine) device(g *gpu) *pb.Device {
	d := &pb.Device{
		Id: g.id, Model: g.model, Serial: g.serial, PciAddress: g.pci,
		MemoryBytes: g.memory, ProcessingUnits: g.units,
		Attributes:    maps.Clone(m.vendor.nvml.info),
		RejectReasons: slices.Clone(g.problems),
		Health:        pb.Health_HEALTH_HEALTHY,
	}
	if f, ok := m.PCIAt(g.pci); ok {
		f.Place(d)
	}
	m.direct(d)
	if g.major > 0 {
		d.Attributes["compute_capability"] = fmt.Sprintf("%d.%d", g.major, g.lesser)
		d.Attributes["training"] = strconv.FormatBool(g.major >= 8)  // Ampere
		d.Attributes["inference"] = strconv.FormatBool(g.major >= 9) // Hopper
		if g.major < m.cfg.minMajor || g.major == m.cfg.minMajor && g.lesser < m.cfg.minMinor {
			d.RejectReasons = append(d.RejectReasons, fmt.Sprintf("compute capability %d.%d is below %s", g.major, g.lesser, m.cfg.MinComputeCapability))
		}
	}
	switch {
	case g.parent != nil:
		d.ParentId = g.parent.id
		d.Consumes = []*pb.CounterUse{{Set: g.parent.id, Amounts: g.slices}}
		d.Attributes["mig_profile"] = g.profile
		d.Attributes["enforcement"] = "mig"
		if g.profile != "" {
			d.Capacity = map[string]string{migName(g.profile): "1"}
		}
	case g.mig:
		d.Consumes = []*pb.CounterUse{{Set: g.id, Amounts: g.slices}}
		d.RejectReasons = append(d.RejectReasons, "MIG mode is on: its instances are separate devices")
	case g.memory > 0:
		d.Capacity = m.capacity(g)
		if m.cfg.Fractions {
			d.Attributes["enforcement"] = m.cfg.Enforcement
		}
	}
	m.vendor.ail(d, g)
	if why := m.unreachable(); why != "" && d.Health < pb.Health_HEALTH_UNHEALTHY {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, why
		d.RejectReasons = append(d.RejectReasons, why)
	}
	d.Allocatable = len(d.RejectReasons) == 0
	return d
}

// shared are the device files that every GPU container requires.
var shared = []string{"nvidiactl", "nvidia-uvm"}

// unreachable returns a message if one of the device files that all GPUs share is missing, or "".
func (m *machine) unreachable() string {
	for _, name := range shared {
		if _, err := m.Node(name); err != nil {
			return driver.Clean(err.Error(), 200)
		}
	}
	return ""
}

func (m *machine) capacity(g *gpu) map[string]string {
	c := map[string]string{whole: "1"}
	if m.cfg.Fractions {
		if n := m.cfg.shares(g); n > 0 {
			c[shares] = accelerator.FormatAmount(pb.SlotType_SHARES, n)
		}
		c[memory] = accelerator.FormatAmount(pb.SlotType_BYTES, int64(g.memory>>20<<20))
	}
	return c
}

// links returns the distances between GPUs. NVML's levels grow with the distance: 0 for the same
// board, up to 50 across sockets.
func links(found []*gpu) []*pb.Link {
	var out []*pb.Link
	for i, a := range found {
		for _, b := range found[i+1:] {
			if a.parent != nil || b.parent != nil || a.handle == nil || b.handle == nil {
				continue
			}
			if l := link(a.handle, b.handle); l != nil {
				l.A, l.B = a.id, b.id
				out = append(out, l)
			}
		}
	}
	return out
}

func link(a, b nvml.Device) *pb.Link {
	l := &pb.Link{}
	if s, ret := a.GetP2PStatus(b, nvml.P2P_CAPS_INDEX_READ); ret == nvml.SUCCESS {
		l.P2P = s == nvml.P2P_STATUS_OK
	}
	if s, ret := a.GetP2PStatus(b, nvml.P2P_CAPS_INDEX_NVLINK); ret == nvml.SUCCESS && s == nvml.P2P_STATUS_OK {
		l.Type, l.Distance = pb.Link_NVLINK, 1
		return l
	}
	level, ret := a.GetTopologyCommonAncestor(b)
	if ret != nvml.SUCCESS {
		return nil
	}
	l.Type, l.Distance = pb.Link_PCIE, 10+uint32(level)
	if level == nvml.TOPOLOGY_INTERNAL {
		l.Type = pb.Link_SAME_BOARD
	}
	return l
}

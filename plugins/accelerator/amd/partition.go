package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// modes are the driver's partition modes of a GPU.
var modes = []string{"spx", "dpx", "tpx", "qpx", "cpx"}

// partitioned adds a partitioned card, which is not allocatable itself, and its partitions.
func (m *machine) partitioned(s *pb.DeviceSnapshot, c card, shown map[int]*pb.Device) {
	parent := m.device(c)
	mode := strings.ToLower(parent.Attributes["compute_partition"])
	known := slices.Contains(modes[1:], mode)
	if !known {
		mode = fmt.Sprintf("%dx", len(c.nodes)) // a name for an unknown mode
	}
	slot := partSlot(mode)
	if !slices.ContainsFunc(s.Slots, func(t *pb.SlotType) bool { return t.Name == slot.Name }) {
		s.Slots = append(s.Slots, slot)
	}
	reasons := slices.Clone(parent.RejectReasons) // problems of the card apply to its partitions
	driver.Reject(parent, "it has %d partitions (%s), which are allocatable instead", len(c.nodes), strings.ToUpper(mode))
	var xcc, units uint64
	var parts []*pb.Device
	for i, n := range c.nodes {
		d := &pb.Device{
			Id: fmt.Sprintf("%s/%d", parent.Id, position(c.nodes, i)), ParentId: parent.Id, Model: parent.Model,
			Serial: parent.Serial, PciAddress: parent.PciAddress, PcieRoot: parent.PcieRoot, NumaNode: parent.NumaNode,
			Health: parent.Health, HealthMessage: parent.HealthMessage, Groups: slices.Clone(parent.Groups),
			Allocatable: true, Capacity: map[string]string{}, Attributes: filled(map[string]string{
				"firmware": parent.Attributes["firmware"], "pci_device": c.Device,
				"compute_partition": parent.Attributes["compute_partition"], "memory_partition": parent.Attributes["memory_partition"],
			}),
			Consumes: []*pb.CounterUse{{Set: parent.Id, Amounts: map[string]string{"xcc": strconv.FormatUint(n.xcc, 10)}}},
		}
		for _, why := range reasons {
			driver.Reject(d, "%s", why)
		}
		if !known {
			driver.Reject(d, "the card's compute partition mode cannot be read")
		}
		m.give(d, n, slot)
		xcc, units = xcc+n.xcc, units+n.units
		shown[n.number] = d
		parts = append(parts, d)
	}
	all := map[string]string{"xcc": strconv.FormatUint(xcc, 10)}
	s.Counters = append(s.Counters, &pb.CounterSet{Name: parent.Id, Counters: all})
	parent.Consumes = []*pb.CounterUse{{Set: parent.Id, Amounts: all}}
	parent.ProcessingUnits = uint32(min(units, 1<<20))
	s.Devices = append(append(s.Devices, parent), parts...)
}

// position returns the number of a partition: the driver's, or its position if the driver's numbers
// are not unique.
func position(nodes []node, i int) int {
	seen := map[uint64]bool{}
	for _, n := range nodes {
		seen[n.part] = true
	}
	if len(seen) == len(nodes) {
		return int(nodes[i].part)
	}
	return i
}

package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// unsure returns the known devices, none of them allocatable, with the reason why the scan failed:
// in each device and in the snapshot, because there may be no devices yet. Without known devices it
// has the slots of the description, so that sessions wait for them instead of being rejected.
func unsure(d *pb.DescribeResponse, known *pb.DeviceSnapshot, err error) *pb.DeviceSnapshot {
	s := &pb.DeviceSnapshot{}
	for _, slot := range d.GetSlots() {
		if !strings.Contains(slot.GetName(), "*") {
			s.Slots = append(s.Slots, slot)
		}
	}
	if known != nil {
		s = proto.Clone(known).(*pb.DeviceSnapshot)
	}
	why := Clean(err.Error(), 200)
	for _, d := range s.GetDevices() {
		d.Health, d.HealthMessage = pb.Health_HEALTH_UNKNOWN, why
		Reject(d, "%s", why)
	}
	s.Look = &pb.Look{State: pb.Look_FAILED, Message: why}
	if errors.Is(err, errHanging) {
		s.Look.State = pb.Look_HANGING
	}
	return s
}

// NotReported is the value of an attribute whose source is missing although it should exist, or has
// an unknown format. It does not mean good or bad.
const NotReported = "not reported"

// Reject marks a visible device as not allocatable, with the reason.
func Reject(d *pb.Device, format string, args ...any) {
	d.Allocatable = false
	if why := Clean(fmt.Sprintf(format, args...), 200); !slices.Contains(d.RejectReasons, why) {
		d.RejectReasons = append(d.RejectReasons, why)
	}
}

// Clean makes a text from the machine fit for display: valid UTF-8, printable, on one line and
// short.
func Clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	for i := range s {
		if i > limit {
			return s[:i]
		}
	}
	return s
}

// masked removes devices, the partitions of them, and counters and slots that only these had.
func masked(d *pb.DescribeResponse, s *pb.DeviceSnapshot, mask []string) *pb.DeviceSnapshot {
	if len(mask) == 0 {
		return s
	}
	gone := func(id string) bool { return slices.Contains(mask, id) }
	s.Devices = slices.DeleteFunc(s.Devices, func(d *pb.Device) bool { return gone(d.GetId()) || gone(d.GetParentId()) })
	used := map[string]bool{}
	for _, slot := range d.GetSlots() {
		used[slot.GetName()] = true
	}
	for _, dev := range s.Devices {
		for slot := range dev.GetCapacity() {
			used[slot] = true
		}
		for _, c := range dev.GetConsumes() {
			used["counters of "+c.GetSet()] = true
		}
	}
	s.Slots = slices.DeleteFunc(s.Slots, func(t *pb.SlotType) bool { return !used[t.GetName()] })
	s.Counters = slices.DeleteFunc(s.Counters, func(c *pb.CounterSet) bool { return !used["counters of "+c.GetName()] })
	return s
}

// Tidy makes a snapshot conform to the contract. A device that violates a rule stays visible
// without its own data and with the reason. Two devices with the same id cannot be distinguished,
// so both are rejected. Every device that is not healthy gets a reason.
func Tidy(d *pb.DescribeResponse, s *pb.DeviceSnapshot) *pb.DeviceSnapshot {
	if len(s.Devices) > accelerator.MaxDevices {
		s.Look = &pb.Look{State: pb.Look_PARTIAL, Message: fmt.Sprintf("%d devices, of which the first %d are shown", len(s.Devices), accelerator.MaxDevices)}
		s.Devices = s.Devices[:accelerator.MaxDevices]
	}
	names := map[string]int{}
	for _, dev := range s.Devices {
		names[dev.GetId()]++
	}
	seen := map[string]int{}
	for i, dev := range s.Devices {
		if id := dev.GetId(); names[id] > 1 {
			seen[id]++
			Reject(dev, "%d devices have the id %s", names[id], id)
			if seen[id] > 1 {
				dev.Id = fmt.Sprintf("%s:%d", id, seen[id])
			}
		}
		alone := &pb.DeviceSnapshot{Revision: 1, Slots: s.Slots, Counters: s.Counters, Devices: []*pb.Device{withoutParent(dev)}}
		if err := accelerator.Validate(d, alone); err != nil {
			broken := &pb.Device{Id: fmt.Sprintf("broken-%d", i), Model: "unreadable device", Health: pb.Health_HEALTH_UNKNOWN}
			if pci := dev.GetPciAddress(); len(pci) == len("0000:00:00.0") && pci == Clean(pci, 12) {
				broken.Id, broken.PciAddress = pci, pci
			}
			Reject(broken, "%v", err)
			s.Devices[i] = broken
		}
	}
	here := map[string]bool{}
	for _, dev := range s.Devices {
		here[dev.GetId()] = true
	}
	for _, dev := range s.Devices {
		if dev.GetParentId() != "" && !here[dev.GetParentId()] {
			Reject(dev, "the device that it is a partition of does not exist")
			dev.ParentId = ""
		}
		if dev.GetHealth() != pb.Health_HEALTH_HEALTHY && dev.GetHealthMessage() == "" && len(dev.GetRejectReasons()) > 0 {
			dev.HealthMessage = dev.GetRejectReasons()[0] // its health event would have no message otherwise
		}
	}
	s.Links = slices.DeleteFunc(s.Links, func(l *pb.Link) bool { return !here[l.GetA()] || !here[l.GetB()] || l.GetA() == l.GetB() })
	return s
}

func withoutParent(d *pb.Device) *pb.Device {
	if d.GetParentId() == "" {
		return d
	}
	d = proto.Clone(d).(*pb.Device)
	d.ParentId = ""
	return d
}

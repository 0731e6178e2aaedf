package acceleratortest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

// expected compares the plugin's snapshot with the expectations in the fixture's file.
func expected(ctx context.Context, b *bench) error {
	m := b.site.machine
	if m == nil {
		return suite.Skip("no fixture is given")
	}
	_, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if n := len(s.GetDevices()); n != m.Expect.Devices {
		return fmt.Errorf("%d devices, want %d: %s", n, m.Expect.Devices, names(s))
	}
	if n := len(usable(s)); n != m.Expect.Allocatable {
		return fmt.Errorf("%d devices to give away, want %d: %s", n, m.Expect.Allocatable, names(s))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Expect.Slots)) {
		if got, err := sum(s, name); err != nil || got != m.Expect.Slots[name] {
			return fmt.Errorf("%q of %s, %v, want %s", got, name, err, m.Expect.Slots[name])
		}
	}
	return nil
}

// names returns the devices and why they are not allocatable.
func names(s *pb.DeviceSnapshot) []string {
	var out []string
	for _, d := range s.GetDevices() {
		line := d.GetId()
		if !d.GetAllocatable() {
			line += fmt.Sprintf(" %q", d.GetRejectReasons())
		}
		out = append(out, line)
	}
	return out
}

// sum returns the total amount of a slot over all allocatable devices.
func sum(s *pb.DeviceSnapshot, slot string) (string, error) {
	for _, t := range s.GetSlots() {
		if t.GetName() != slot {
			continue
		}
		total := int64(0)
		for _, d := range usable(s) {
			if have := d.GetCapacity()[slot]; have != "" {
				n, err := accelerator.ParseAmount(t.GetKind(), have)
				if err != nil {
					return "", err
				}
				total += n
			}
		}
		return accelerator.FormatAmount(t.GetKind(), total), nil
	}
	return "", fmt.Errorf("the machine has no such slot")
}

// parts allocates as many devices of each counter set as fit, like the manager. Their total memory
// must not exceed that of the device they are partitioned from; otherwise the counters would let
// two kernels have the same partition.
func parts(ctx context.Context, b *bench) error {
	_, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if len(s.GetCounters()) == 0 {
		return suite.Skip("no device is cut from another by counters")
	}
	left := map[string]map[string]int64{}
	for _, set := range s.GetCounters() {
		left[set.GetName()] = map[string]int64{}
		for k, v := range set.GetCounters() {
			if left[set.GetName()][k], err = accelerator.ParseAmount(pb.SlotType_COUNT, v); err != nil {
				return err
			}
		}
	}
	used := map[string]uint64{} // memory by parent
	for _, d := range s.GetDevices() {
		if d.GetParentId() == "" || !take(left, d) {
			continue
		}
		used[d.GetParentId()] += d.GetMemoryBytes()
	}
	for id, n := range used {
		if most := device(s, id).GetMemoryBytes(); most > 0 && n > most+most/50 {
			return fmt.Errorf("parts of %s that fit together have %d bytes of its %d", id, n, most)
		}
	}
	return nil
}

// take subtracts the counters that a device consumes, if enough is left.
func take(left map[string]map[string]int64, d *pb.Device) bool {
	for _, sign := range []int64{0, 1} { // check first, then subtract
		for _, use := range d.GetConsumes() {
			for k, v := range use.GetAmounts() {
				n, err := accelerator.ParseAmount(pb.SlotType_COUNT, v)
				if err != nil || left[use.GetSet()][k] < n {
					return false
				}
				left[use.GetSet()][k] -= sign * n
			}
		}
	}
	return len(d.GetConsumes()) > 0
}

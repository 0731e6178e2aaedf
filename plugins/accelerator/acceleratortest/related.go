package acceleratortest

import (
	"slices"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// boards groups devices by their hardware: those with the same parent, counter set or group get the
// same number. A group that contains all devices is ignored.
func boards(s *pb.DeviceSnapshot) map[string]int {
	of := map[string]int{}
	names := map[string]int{} // parent, set or group to the number of the board
	members := map[string]int{}
	for _, d := range s.GetDevices() {
		for _, g := range d.GetGroups() {
			members[g]++
		}
	}
	for i, d := range s.GetDevices() {
		of[d.GetId()] = i
	}
	join := func(id, name string) {
		other, ok := names[name]
		mine := of[id]
		names[name] = mine
		if !ok || other == mine {
			return
		}
		for k, n := range of {
			if n == other {
				of[k] = mine
			}
		}
		for k, n := range names {
			if n == other {
				names[k] = mine
			}
		}
	}
	for _, d := range s.GetDevices() {
		join(d.GetId(), "device "+d.GetId())
		if p := d.GetParentId(); p != "" {
			join(d.GetId(), "device "+p)
		}
		for _, use := range d.GetConsumes() {
			join(d.GetId(), "counters "+use.GetSet())
		}
		for _, g := range d.GetGroups() {
			if members[g] < len(s.GetDevices()) {
				join(d.GetId(), "group "+g)
			}
		}
	}
	return of
}

// unrelated returns allocatable devices that can all be in use at the same time: no two have the
// same parent or counter set, and none is the parent of another.
func unrelated(s *pb.DeviceSnapshot) []*pb.Device {
	taken := map[string]bool{}
	var out []*pb.Device
	for _, d := range usable(s) {
		names := []string{"device " + d.GetId()}
		if p := d.GetParentId(); p != "" {
			names = append(names, "device "+p)
		}
		for _, use := range d.GetConsumes() {
			names = append(names, "counters "+use.GetSet())
		}
		if slices.ContainsFunc(names, func(n string) bool { return taken[n] }) {
			continue
		}
		for _, n := range names {
			taken[n] = true
		}
		out = append(out, d)
	}
	return out
}

// together returns n unrelated devices that one kernel can use, or none if there are too few.
func together(s *pb.DeviceSnapshot, n int) []*pb.Device {
	bySlot := map[string][]*pb.Device{}
	for _, d := range unrelated(s) {
		slot := all(s, d).GetSlot()
		bySlot[slot] = append(bySlot[slot], d)
	}
	for _, slot := range s.GetSlots() {
		counts := slot.GetAllowedCounts()
		if d := bySlot[slot.GetName()]; len(d) >= n && (len(counts) == 0 || slices.Contains(counts, uint32(n))) {
			return d[:n]
		}
	}
	return nil
}

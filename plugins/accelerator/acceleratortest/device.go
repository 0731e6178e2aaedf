package acceleratortest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

var deviceChecks = []Check{
	{"snapshot", "the first snapshot comes at once and is valid", firstSnapshot},
	{"expected", "the snapshot agrees with the simulated machine: devices, allocatable ones, sums of slots", expected},
	{"parts", "partitions that fit together by their counters are not larger than their device", parts},
	{"stable", "another process on the same hardware gives the same snapshot", stable},
	{"mask", "masked devices are left out, the others stay", mask},
	{"no-hardware", "without hardware and driver the plugin is healthy and empty", noHardware},
	{"health", "WatchHealth reports every device that is not healthy", health},
}

func firstSnapshot(ctx context.Context, b *bench) error {
	_, _, err := b.ready(ctx)
	return err
}

func stable(ctx context.Context, b *bench) error {
	_, first, err := b.ready(ctx)
	if err != nil {
		return err
	}
	_, second, err := b.ready(ctx)
	if err != nil {
		return err
	}
	return equal("snapshots of two processes differ", first, second)
}

func mask(ctx context.Context, b *bench) error {
	c, before, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	gone := before.GetDevices()[0].GetId()
	req := b.request()
	req.DeviceMask = []string{gone, "no-such-device"}
	if _, err := c.Configure(ctx, req); err != nil {
		return err
	}
	after, err := snapshot(ctx, c)
	if err != nil {
		return err
	}
	for _, d := range before.GetDevices() {
		masked := d.GetId() == gone || d.GetParentId() == gone
		if here := device(after, d.GetId()) != nil; here == masked {
			return fmt.Errorf("device %s: shown %v after %s was masked", d.GetId(), here, gone)
		}
	}
	return nil
}

func device(s *pb.DeviceSnapshot, id string) *pb.Device {
	for _, d := range s.GetDevices() {
		if d.GetId() == id {
			return d
		}
	}
	return nil
}

// noHardware points every root to an empty directory. Plugins without PCI vendors can have devices
// from other sources, so they are skipped.
func noHardware(ctx context.Context, b *bench) error {
	empty := filepath.Join(b.dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		return err
	}
	if m := b.site.machine; m != nil && len(m.Servers) > 0 {
		b.plugin.Config = b.site.plugin.Config // no settings that lead to a server
	}
	b.plugin.Roots = &pb.Roots{Sys: empty, Dev: empty, Proc: empty, Driver: empty, Path: []string{empty}}
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if n := len(s.GetDevices()); n > 0 && (len(c.Description.GetPciVendors()) > 0 || !b.bare()) {
		return fmt.Errorf("%d devices without hardware", n)
	}
	if _, err := c.Preflight(ctx, &pb.PreflightRequest{}); err != nil {
		return err
	}
	if log := b.log.String(); len(log) > 0 {
		return fmt.Errorf("logs at info level or above although nothing is wrong: %s", log)
	}
	return nil
}

func has(d *pb.DescribeResponse, c pb.Capability) bool {
	return slices.Contains(d.GetCapabilities(), c)
}

func health(ctx context.Context, b *bench) error {
	c, s, err := b.ready(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w, err := c.WatchHealth(ctx, &pb.WatchHealthRequest{})
	if err != nil {
		return err
	}
	if !has(c.Description, pb.Capability_CAPABILITY_HEALTH) {
		_, err := w.Recv()
		return want("WatchHealth without the capability", err, codes.Unimplemented)
	}
	ill := map[string]pb.Health{}
	for _, d := range s.GetDevices() {
		if d.GetHealth() != pb.Health_HEALTH_HEALTHY {
			ill[d.GetId()] = d.GetHealth()
		}
	}
	for n := len(ill); n > 0; n-- {
		e, err := w.Recv()
		if err != nil {
			return err
		}
		if ill[e.GetDeviceId()] != e.GetHealth() || e.GetUnixMs() == 0 {
			return fmt.Errorf("event %v does not agree with the snapshot", e)
		}
	}
	return nil
}

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
		return fmt.Errorf("%d allocatable devices, want %d: %s", n, m.Expect.Allocatable, names(s))
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
		return suite.Skip("no device is a partition with counters")
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

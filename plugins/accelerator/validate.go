package accelerator

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Limits of a snapshot: far above any real machine, and low enough to protect the host.
const (
	MaxDevices = 1024
	MaxSlots   = 128
	MaxLinks   = MaxDevices * 64
	maxText    = 1024
	maxEntries = 128 // of each list and map of one device, and of driver_info
	maxIssues  = 20  // enough to understand, short enough to log
)

var deviceForm = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)

// issues collects the errors of a message.
type issues struct {
	list []error
	more int
}

func (i *issues) add(format string, args ...any) {
	if len(i.list) == maxIssues {
		i.more++
		return
	}
	i.list = append(i.list, fmt.Errorf(format, args...))
}

func (i *issues) err() error {
	if i.more > 0 {
		i.list = append(i.list, fmt.Errorf("and %d more", i.more))
	}
	return errors.Join(i.list...)
}

func (i *issues) text(what, s string) {
	if len(s) > maxText {
		i.add("%s is longer than %d bytes", what, maxText)
	}
}

func (i *issues) entries(what string, n int) {
	if n > maxEntries {
		i.add("%s: %d are more than %d", what, n, maxEntries)
	}
}

// IsDeviceID reports whether a text is a valid device id. Identifiers that hardware reports may not
// be.
func IsDeviceID(id string) bool { return deviceForm.MatchString(id) }

// Validate checks a snapshot against the plugin's description. Hosts call it for every snapshot and
// discard a snapshot that fails.
func Validate(d *pb.DescribeResponse, s *pb.DeviceSnapshot) error {
	var is issues
	if n := len(s.GetDevices()); n > MaxDevices {
		is.add("%d devices are more than %d", n, MaxDevices)
	}
	if n := len(s.GetSlots()); n > MaxSlots {
		is.add("%d slots are more than %d", n, MaxSlots)
	}
	if n := len(s.GetLinks()); n > MaxLinks {
		is.add("%d links are more than %d", n, MaxLinks)
	}
	if n := len(s.GetCounters()); n > MaxDevices {
		is.add("%d counter sets are more than %d", n, MaxDevices)
	}
	if err := is.err(); err != nil {
		return err
	}
	is.entries("driver_info", len(s.GetDriverInfo()))
	for k, v := range s.GetDriverInfo() {
		is.text("driver_info", k+v)
	}
	if s.GetRevision() == 0 {
		is.add("revision must be above 0")
	}
	is.look(s.GetLook())
	c := check{issues: &is, counters: map[string]map[string]int64{}, devices: map[string]*pb.Device{}}
	c.slots = slots(&is, d, s.GetSlots(), false)
	for name, slot := range c.slots {
		if !described(d, slot) {
			is.add("slot %q was not described", name)
		}
	}
	c.counterSets(s.GetCounters())
	for _, dev := range s.GetDevices() {
		c.device(dev)
	}
	for _, dev := range s.GetDevices() {
		if p := dev.GetParentId(); p == dev.GetId() && p != "" {
			is.add("device %q is its own parent", p)
		}
	}
	c.links(s.GetLinks())
	return is.err()
}

// look checks that an incomplete scan has a message.
func (i *issues) look(l *pb.Look) {
	i.text("look", l.GetMessage())
	if _, ok := pb.Look_State_name[int32(l.GetState())]; !ok {
		i.add("look: unknown state %d", l.GetState())
	}
	if l.GetState() > pb.Look_COMPLETE && l.GetMessage() == "" {
		i.add("look: %v without a message", l.GetState())
	}
}

// described reports whether Describe announced the slot, by name or pattern, with the same
// properties.
func described(d *pb.DescribeResponse, s *pb.SlotType) bool {
	for _, k := range d.GetSlots() {
		if k.GetKind() == s.GetKind() && k.GetUnified() == s.GetUnified() && matches(k.GetName(), s.GetName()) {
			return true
		}
	}
	return false
}

// matches reports whether name matches the pattern, in which one * matches any characters.
func matches(pattern, name string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

type check struct {
	*issues
	slots    map[string]*pb.SlotType
	counters map[string]map[string]int64
	devices  map[string]*pb.Device
}

func (c *check) counterSets(sets []*pb.CounterSet) {
	for _, set := range sets {
		c.text("counter set's name", set.GetName())
		c.entries(fmt.Sprintf("counter set %.80q: counters", set.GetName()), len(set.GetCounters()))
		if set.GetName() == "" || c.counters[set.GetName()] != nil {
			c.add("counter set %.80q has no name or is listed twice", set.GetName())
			continue
		}
		c.counters[set.GetName()] = c.amounts("counter set "+set.GetName(), set.GetCounters())
	}
}

func (c *check) amounts(where string, m map[string]string) map[string]int64 {
	out := make(map[string]int64, len(m))
	for k, v := range m {
		n, err := ParseAmount(pb.SlotType_COUNT, v)
		if err != nil {
			c.add("%s, %s: %w", where, k, err)
		}
		out[k] = n
	}
	return out
}

func (c *check) device(d *pb.Device) {
	id := d.GetId()
	if !IsDeviceID(id) {
		c.add("device id %.140q is malformed", id)
		return
	}
	if c.devices[id] != nil {
		c.add("device %q is listed twice", id)
		return
	}
	c.devices[id] = d
	if d.NumaNode != nil && (d.GetNumaNode() < 0 || d.GetNumaNode() > 1023) {
		c.add("device %q: numa node %d; leave it unset when unknown", id, d.GetNumaNode())
	}
	if _, ok := pb.Health_name[int32(d.GetHealth())]; !ok {
		c.add("device %q: unknown health %d", id, d.GetHealth())
	}
	switch {
	case d.GetModel() == "":
		c.add("device %q has no model", id)
	case !d.GetAllocatable() && len(d.GetRejectReasons()) == 0:
		c.add("device %q is not allocatable and has no reason", id)
	case d.GetAllocatable() && len(d.GetRejectReasons()) > 0:
		c.add("device %q is allocatable and has reject reasons", id)
	case d.GetAllocatable() && d.GetHealth() == pb.Health_HEALTH_LOST:
		c.add("device %q is lost and allocatable", id)
	case d.GetAllocatable() && len(d.GetCapacity()) == 0:
		c.add("device %q is allocatable and has no capacity", id)
	}
	c.texts(d)
	c.capacity(d)
	c.consumes(d)
}

// texts limits the texts of a device: a snapshot of MaxDevices must stay small enough to be sent,
// stored and shown.
func (c *check) texts(d *pb.Device) {
	where := fmt.Sprintf("device %q: ", d.GetId())
	list := slices.Concat([]string{d.GetModel(), d.GetSerial(), d.GetPciAddress(), d.GetPcieRoot(), d.GetHealthMessage()}, d.GetRejectReasons(), d.GetGroups())
	for k, v := range d.GetAttributes() {
		if k == "" {
			c.add("%san attribute without a name", where)
		}
		list = append(list, k, v)
	}
	for _, t := range list {
		c.text(where+"a text", t)
	}
	for what, n := range map[string]int{"attributes": len(d.GetAttributes()), "groups": len(d.GetGroups()), "capacity": len(d.GetCapacity()),
		"consumes": len(d.GetConsumes()), "reject_reasons": len(d.GetRejectReasons())} {
		c.entries(where+what, n)
	}
}

func (c *check) capacity(d *pb.Device) {
	for name, amount := range d.GetCapacity() {
		slot := c.slots[name]
		if slot == nil {
			c.add("device %q: capacity for the unknown slot %.80q", d.GetId(), name)
			continue
		}
		n, err := ParseAmount(slot.GetKind(), amount)
		switch {
		case err != nil:
			c.add("device %q, %s: %w", d.GetId(), name, err)
		case n == 0:
			c.add("device %q, %s: capacity is 0; leave the slot out", d.GetId(), name)
		case slot.GetKind() == pb.SlotType_UNIQUE && n != 1:
			c.add("device %q, %s: capacity of a unique slot is 1, not %s", d.GetId(), name, amount)
		case slot.GetKind() == pb.SlotType_BYTES && d.GetMemoryBytes() > 0 && uint64(n) > d.GetMemoryBytes():
			c.add("device %q, %s: %d allocatable bytes are more than the %d that it has", d.GetId(), name, n, d.GetMemoryBytes())
		}
	}
}

func (c *check) consumes(d *pb.Device) {
	for _, use := range d.GetConsumes() {
		set, ok := c.counters[use.GetSet()]
		if !ok {
			c.add("device %q consumes from the unknown set %.80q", d.GetId(), use.GetSet())
			continue
		}
		for k, n := range c.amounts("device "+d.GetId(), use.GetAmounts()) {
			if have, ok := set[k]; !ok || n > have {
				c.add("device %q consumes %d of %s/%s, which has %d", d.GetId(), n, use.GetSet(), k, have)
			}
		}
	}
}

func (c *check) links(links []*pb.Link) {
	for _, l := range links {
		if c.devices[l.GetA()] == nil || c.devices[l.GetB()] == nil || l.GetA() == l.GetB() {
			c.add("link from %.140q to %.140q does not join two known devices", l.GetA(), l.GetB())
		}
		if !finite(l.GetGbps()) || l.GetGbps() < 0 {
			c.add("link from %q to %q: %v Gbit/s", l.GetA(), l.GetB(), l.GetGbps())
		}
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

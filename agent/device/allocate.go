package device

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/resource"
)

// slotAmount is an amount of one slot on one device.
type slotAmount struct {
	device, slot string
	amount       int64
}

// Allocate allocates amounts to an id, all or none, after checking all of them. A second call with
// the same id replaces its allocations. It returns ResourceExhausted if an amount is not available.
func (m *Manager) Allocate(id string, allocations []*agentpb.Allocation) error {
	want, err := parse(allocations)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	others := maps.Clone(m.amounts)
	delete(others, id)
	for i, h := range want {
		if err := m.fits(h, others, want[:i]); err != nil {
			return err
		}
	}
	if err := m.countersFit(others, want); err != nil {
		return err
	}
	m.amounts[id] = want
	return nil
}

// Adopt allocates what a record of a running kernel contains, even if it no longer fits: the kernel
// uses these devices already.
func (m *Manager) Adopt(id string, allocations []*agentpb.Allocation) {
	amounts, err := parse(allocations)
	if err != nil {
		m.cfg.Logger.Error("allocation in a record is unreadable", "id", id, "error", err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.amounts[id] = amounts
}

// Release frees the allocations of the id.
func (m *Manager) Release(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.amounts, id)
}

// Allocated returns the sums of the allocations, by device and slot.
func (m *Manager) Allocated() map[string]resource.Slots {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := map[string]resource.Slots{}
	for _, list := range m.amounts {
		for _, h := range list {
			if sum[h.device] == nil {
				sum[h.device] = resource.Slots{}
			}
			sum[h.device][h.slot] += h.amount
		}
	}
	return sum
}

func parse(allocations []*agentpb.Allocation) ([]slotAmount, error) {
	out := make([]slotAmount, 0, len(allocations))
	for _, a := range allocations {
		if !resource.ValidName(a.Slot) {
			return nil, fmt.Errorf("%.80q is not a slot name: %w", a.Slot, errdefs.ErrInvalidArgument)
		}
		amount, err := resource.Parse(a.Slot, a.Amount)
		if err != nil {
			return nil, fmt.Errorf("device %s: %w: %w", a.DeviceId, err, errdefs.ErrInvalidArgument)
		}
		if amount <= 0 {
			return nil, fmt.Errorf("device %s, slot %s: amount %s is not above 0: %w", a.DeviceId, a.Slot, a.Amount, errdefs.ErrInvalidArgument)
		}
		out = append(out, slotAmount{a.DeviceId, a.Slot, amount})
	}
	return out, nil
}

// fits checks one amount against the allocations of others and the preceding amounts of the same
// request.
func (m *Manager) fits(h slotAmount, others map[string][]slotAmount, before []slotAmount) error {
	d, v := m.find(h.device)
	if d == nil {
		return fmt.Errorf("device %s is not on this node: %w", h.device, errdefs.ErrNotFound)
	}
	if !d.Allocatable {
		return fmt.Errorf("device %s is not allocatable: %s: %w", h.device, strings.Join(d.RejectReasons, "; "), errdefs.ErrFailedPrecondition)
	}
	if d.Health == agentpb.Device_UNHEALTHY || d.Health == agentpb.Device_LOST {
		return fmt.Errorf("device %s is %s: %s: %w", h.device, strings.ToLower(d.Health.String()), d.HealthMessage, errdefs.ErrFailedPrecondition)
	}
	text, ok := d.Capacity[h.slot]
	if !ok {
		return fmt.Errorf("device %s has no slot %s: %w", h.device, h.slot, errdefs.ErrInvalidArgument)
	}
	capacity, err := resource.Parse(h.slot, text)
	if err != nil {
		return fmt.Errorf("capacity of device %s: %w", h.device, err)
	}
	if q := quantum(v.slots, h.slot); h.amount%q != 0 && h.amount != capacity {
		return fmt.Errorf("device %s allocates %s in steps of %s, not %s: %w", h.device, h.slot,
			resource.Format(h.slot, q), resource.Format(h.slot, h.amount), errdefs.ErrInvalidArgument)
	}
	used := map[string]int64{}
	for o := range all(others, before) {
		switch {
		case o.device != h.device:
		case o.slot == h.slot && kindOf(v.slots, h.slot) == agentpb.SlotType_UNIQUE:
			return fmt.Errorf("device %s: slot %s is already allocated to another kernel, and only one can use it: %w", h.device, h.slot, errdefs.ErrResourceExhausted)
		case o.slot == h.slot:
			used[o.slot] += o.amount
		case exclude(v.slots, o.slot, h.slot):
			return fmt.Errorf("device %s is allocated as %s, which excludes %s: %w", h.device, o.slot, h.slot, errdefs.ErrResourceExhausted)
		case unified(v.slots, h.slot) && unified(v.slots, o.slot):
			used[o.slot] += o.amount
		}
	}
	left := capacity
	for slot, n := range used {
		of, err := resource.Parse(slot, d.Capacity[slot])
		if err != nil {
			return fmt.Errorf("capacity of device %s: %w", h.device, err)
		}
		left -= resource.Part(n, of, capacity)
	}
	if h.amount > left {
		return fmt.Errorf("device %s has %s of %s left, not %s: %w", h.device,
			resource.Format(h.slot, max(left, 0)), h.slot, resource.Format(h.slot, h.amount), errdefs.ErrResourceExhausted)
	}
	return nil
}

// all yields the allocations of others, then more.
func all(others map[string][]slotAmount, more []slotAmount) func(func(slotAmount) bool) {
	return func(yield func(slotAmount) bool) {
		for _, list := range others {
			for _, h := range list {
				if !yield(h) {
					return
				}
			}
		}
		for _, h := range more {
			if !yield(h) {
				return
			}
		}
	}
}

func (m *Manager) find(id string) (*agentpb.Device, view) {
	key, _ := pluginOf(id)
	v := m.views[key]
	for _, d := range v.devices {
		if d.Id == id {
			return d, v
		}
	}
	return nil, v
}

func kindOf(slots []*agentpb.SlotType, name string) agentpb.SlotType_Kind {
	for _, s := range slots {
		if s.Name == name {
			return s.Kind
		}
	}
	return agentpb.SlotType_COUNT
}

// unified reports whether a slot is an alias for the common amount of its devices.
func unified(slots []*agentpb.SlotType, name string) bool {
	return slices.ContainsFunc(slots, func(s *agentpb.SlotType) bool { return s.Name == name && s.Unified })
}

// quantum returns the smallest step of a slot.
func quantum(slots []*agentpb.SlotType, name string) int64 {
	for _, s := range slots {
		if s.Name == name && s.Quantum != "" {
			if q, err := resource.Parse(name, s.Quantum); err == nil && q > 0 {
				return q
			}
		}
	}
	return 1
}

// exclude reports whether either slot excludes the other one.
func exclude(slots []*agentpb.SlotType, a, b string) bool {
	return slices.ContainsFunc(slots, func(s *agentpb.SlotType) bool {
		return s.Name == a && resource.Apart(s.ExclusiveWith, b) || s.Name == b && resource.Apart(s.ExclusiveWith, a)
	})
}

// countersFit checks the counters that partitions consume from shared hardware. A device in use
// consumes its counters once, whatever amount of it is allocated. A device also conflicts with the
// device that it is partitioned from.
func (m *Manager) countersFit(others map[string][]slotAmount, want []slotAmount) error {
	inUse := map[string]bool{}
	for h := range all(others, want) {
		inUse[h.device] = true
	}
	drawn := map[string]int64{}
	for id := range inUse {
		d, v := m.find(id)
		for up, level := d.GetParent(), 0; up != "" && level < len(v.devices); level++ {
			if inUse[up] {
				return fmt.Errorf("device %s is a partition of %s, and one of them is in use: %w", id, up, errdefs.ErrResourceExhausted)
			}
			parent, _ := m.find(up)
			up = parent.GetParent()
		}
		for _, use := range d.GetConsumes() {
			for name, text := range use.Amounts {
				n, err := resource.Parse("count", text)
				if err != nil {
					return fmt.Errorf("device %s: %w", id, err)
				}
				total := use.Set + "/" + name
				drawn[total] += n
				if drawn[total] > v.counters[use.Set][name] {
					return fmt.Errorf("device %s does not fit next to the devices in use on %s %s: %w", id, use.Set, name, errdefs.ErrResourceExhausted)
				}
			}
		}
	}
	return nil
}

package plan

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// With returns the snapshot with a suggestion applied, except for the end of a session, which
// Without applies.
func With(s *Snapshot, session uuid.UUID, x Suggestion) *Snapshot {
	out := *s
	out.Pending = slices.Clone(s.Pending)
	for i := range out.Pending {
		if r := &out.Pending[i]; r.SessionID == session {
			x.change(r)
		}
	}
	return &out
}

// change applies a suggestion to a request.
func (x *Suggestion) change(r *Request) {
	if x.Slots != nil {
		r.Kernels = slices.Clone(r.Kernels)
		for i := range r.Kernels {
			r.Kernels[i].Slots = x.Slots.Clone()
		}
	}
	if x.Group != uuid.Nil {
		r.Group = x.Group
	}
	if x.AnyAgent {
		r.Strict = false
	}
}

// Without returns the snapshot after the end of a session.
func Without(s *Snapshot, x *Running) *Snapshot {
	out := *s
	freed := map[uuid.UUID]resource.Slots{}
	for _, h := range x.Holds {
		if freed[h.DeviceID] == nil {
			freed[h.DeviceID] = resource.Slots{}
		}
		freed[h.DeviceID][h.Slot] += h.Amount
	}
	out.Running = slices.DeleteFunc(slices.Clone(s.Running), func(r Running) bool { return r.SessionID == x.SessionID })
	out.Agents = slices.Clone(s.Agents)
	for i := range out.Agents {
		a := &out.Agents[i]
		if !slices.ContainsFunc(a.Devices, func(d Device) bool { return freed[d.ID] != nil }) {
			continue
		}
		a.Devices = slices.Clone(a.Devices)
		for j := range a.Devices {
			a.Devices[j].Used = less(a.Devices[j].Used, freed[a.Devices[j].ID])
		}
	}
	held := resource.Slots{}
	for _, h := range x.Holds {
		held[h.Slot] += h.Amount
	}
	out.Limits = slices.Clone(s.Limits)
	counted := &Request{Owner: x.Owner, Project: x.Project, Domain: x.Domain, Group: x.Group}
	for _, acc := range NewLedger(out.Limits).of(counted) {
		acc.Used = less(acc.Used, x.Slots)
		acc.Sessions--
	}
	given := resource.Slots{}
	given.Sub(held)
	out.Holdings = append(slices.Clone(s.Holdings), Holding{
		Group: x.Group, Domain: x.Domain, Project: x.Project, Owner: x.Owner, Slots: given,
	})
	return &out
}

// less returns a minus b, at least 0.
func less(a, b resource.Slots) resource.Slots {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(a)
	for name, amount := range b {
		if have, ok := out[name]; ok {
			out[name] = max(0, have-amount)
		}
	}
	return out
}

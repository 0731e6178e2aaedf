package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// model is the cluster as the rules describe it, in code as plain as possible. It applies the
// decisions of a plan one by one and reports which rule a decision breaks.
type model struct {
	s       *plan.Snapshot
	agents  map[uuid.UUID]*plan.Agent
	devices map[uuid.UUID]*plan.Device
	host    map[uuid.UUID]uuid.UUID
	used    map[uuid.UUID]resource.Slots
	before  map[uuid.UUID]bool // devices in use before the session whose kernels are applied, in any order
}

func newModel(s *plan.Snapshot) *model {
	m := &model{
		s: s, agents: map[uuid.UUID]*plan.Agent{}, devices: map[uuid.UUID]*plan.Device{},
		host: map[uuid.UUID]uuid.UUID{}, used: map[uuid.UUID]resource.Slots{},
	}
	for i := range s.Agents {
		a := &s.Agents[i]
		m.agents[a.ID] = a
		for j := range a.Devices {
			d := &a.Devices[j]
			m.devices[d.ID], m.host[d.ID] = d, a.ID
			m.used[d.ID] = resource.Slots{}
			m.used[d.ID].Add(d.Used)
		}
	}
	return m
}

// excludes reports whether two slot types exclude each other, in either order.
func (m *model) excludes(a, b string) bool {
	for _, t := range m.s.SlotTypes {
		for _, p := range t.ExclusiveWith {
			match := func(name string) bool {
				prefix, star := strings.CutSuffix(p, "*")
				return name == p || star && strings.HasPrefix(name, prefix)
			}
			if a != b && (t.Name == a && match(b) || t.Name == b && match(a)) {
				return true
			}
		}
	}
	return false
}

func (m *model) busy(device uuid.UUID) bool {
	for _, n := range m.used[device] {
		if n > 0 {
			return true
		}
	}
	return false
}

// suits returns an error unless the agent may run the request.
func (m *model) suits(a *plan.Agent, r *plan.Request) error {
	switch {
	case a.Group != r.Group:
		return fmt.Errorf("agent %s is of another group", a.Name)
	case !a.Schedulable:
		return fmt.Errorf("agent %s is not schedulable", a.Name)
	case r.Architecture != "" && r.Architecture != a.Architecture:
		return fmt.Errorf("agent %s has another architecture", a.Name)
	}
	for _, v := range r.Volumes {
		if !slices.Contains(a.Volumes, v) {
			return fmt.Errorf("agent %s lacks volume %s", a.Name, v)
		}
	}
	return nil
}

// gives reports whether the agent allows the amounts of a kernel.
func gives(a *plan.Agent, k plan.KernelRequest) bool {
	for slot, n := range k.Slots {
		if counts := a.Counts[slot]; len(counts) > 0 && !slices.Contains(counts, int(n)) {
			return false
		}
	}
	return true
}

// apply checks the placement of one kernel and allocates it.
func (m *model) apply(r *plan.Request, k plan.KernelRequest, as plan.Assignment) error {
	a := m.agents[as.AgentID]
	if a == nil {
		return fmt.Errorf("no agent %s", as.AgentID)
	}
	if err := m.suits(a, r); err != nil {
		return err
	}
	if !gives(a, k) {
		return fmt.Errorf("agent %s gives amounts in %v only", a.Name, a.Counts)
	}
	sum := resource.Slots{}
	mine := map[uuid.UUID]resource.Slots{}
	for _, al := range as.Allocs {
		d := m.devices[al.DeviceID]
		if d == nil || m.host[al.DeviceID] != as.AgentID {
			return fmt.Errorf("device %s is not on agent %s", al.DeviceID, a.Name)
		}
		if !d.Allocatable || !d.Healthy || al.Amount <= 0 {
			return fmt.Errorf("bad allocation %+v", al)
		}
		if mine[d.ID] == nil {
			mine[d.ID] = resource.Slots{}
		}
		mine[d.ID][al.Slot] += al.Amount
		sum[al.Slot] += al.Amount
	}
	if !maps.Equal(sum, k.Slots) {
		return fmt.Errorf("allocated %v, asked %v", sum, k.Slots)
	}
	if err := m.shape(a, k, mine); err != nil {
		return err
	}
	for id, slots := range mine {
		if err := m.fits(id, slots); err != nil {
			return err
		}
		m.used[id].Add(slots)
	}
	return nil
}

// fits checks the allocated amounts of one device.
func (m *model) fits(id uuid.UUID, slots resource.Slots) error {
	for name, n := range slots {
		if n > m.devices[id].Capacity[name]-m.used[id][name] {
			return fmt.Errorf("over capacity: %s %s", name, id)
		}
		if name == "cuda.device" && m.busy(id) {
			return fmt.Errorf("busy device given as a whole: used %v", m.used[id])
		}
		if m.used[id]["cuda.device"] > 0 {
			return fmt.Errorf("%s of a device that is given as a whole", name)
		}
		for _, other := range []resource.Slots{m.used[id], slots} {
			for o, used := range other {
				if used > 0 && m.excludes(name, o) {
					return fmt.Errorf("%s beside %s", name, o)
				}
			}
		}
	}
	return nil
}

// shape checks that the amounts are split over devices as the rules say.
func (m *model) shape(a *plan.Agent, k plan.KernelRequest, mine map[uuid.UUID]resource.Slots) error {
	joint := k.Slots["cuda.shares"] > 0 && !m.excludes("cuda.shares", "cuda.mem")
	for _, slot := range []string{"cuda.shares", "cuda.mem"} {
		var largest int64
		for _, d := range a.Devices {
			if d.Allocatable && d.Healthy {
				largest = max(largest, d.Capacity[slot])
			}
		}
		parts := 0
		for id, slots := range mine {
			switch n := slots[slot]; {
			case n == 0:
			case slot == "cuda.mem" && joint:
				if slots["cuda.shares"] == 0 {
					return fmt.Errorf("memory away from its shares")
				}
			case k.Slots[slot] <= largest:
				parts++
			case n < m.devices[id].Capacity[slot]:
				parts++ // the remainder
			case m.before[id] || m.before == nil && m.busy(id):
				return fmt.Errorf("all %s of a busy device", slot)
			}
		}
		if parts > 1 {
			return fmt.Errorf("%s in %d pieces", slot, parts)
		}
	}
	return nil
}

// room reports, by trying every combination, whether a kernel fits on an agent now. Each
// accelerator gives nothing, itself as a whole, or a part of the requested amount.
func (m *model) room(a *plan.Agent, k plan.KernelRequest) bool {
	if !gives(a, k) {
		return false
	}
	var cpu, mem int64
	var gpus []*plan.Device
	for i := range a.Devices {
		d := &a.Devices[i]
		switch {
		case !d.Allocatable || !d.Healthy:
		case d.Capacity["cpu"] > 0:
			cpu += d.Capacity["cpu"] - m.used[d.ID]["cpu"]
		case d.Capacity["mem"] > 0:
			mem += d.Capacity["mem"] - m.used[d.ID]["mem"]
		default:
			gpus = append(gpus, d)
		}
	}
	if k.Slots["tpu.device"] > 0 || cpu < k.Slots["cpu"] || mem < k.Slots["mem"] {
		return false
	}
	return m.tryAll(a, k, gpus, map[uuid.UUID]resource.Slots{})
}

// tryAll gives the first accelerator every possible role and continues.
func (m *model) tryAll(a *plan.Agent, k plan.KernelRequest, gpus []*plan.Device, mine map[uuid.UUID]resource.Slots) bool {
	if len(gpus) == 0 {
		return m.complete(a, k, mine)
	}
	d := gpus[0]
	left := func(slot string) int64 {
		n := k.Slots[slot]
		for _, s := range mine {
			n -= s[slot]
		}
		return min(n, d.Capacity[slot]-m.used[d.ID][slot])
	}
	share := left("cuda.shares")
	shares := []int64{0, share}
	if rest := k.Slots["cuda.shares"] % 1000; rest > 0 && rest < share {
		shares = append(shares, rest)
	}
	for _, whole := range []int64{0, 1} {
		for _, sh := range shares {
			memory := []int64{0, left("cuda.mem")}
			if rest := k.Slots["cuda.mem"] % d.Capacity["cuda.mem"]; rest > 0 && rest < memory[1] {
				memory = append(memory, rest)
			}
			for _, mm := range memory {
				slots := resource.Slots{}
				for name, n := range map[string]int64{"cuda.device": whole, "cuda.shares": sh, "cuda.mem": mm} {
					if n > 0 {
						slots[name] = n
					}
				}
				if len(slots) > 0 && m.fits(d.ID, slots) != nil {
					continue
				}
				next := maps.Clone(mine)
				if len(slots) > 0 {
					next[d.ID] = slots
				}
				if m.tryAll(a, k, gpus[1:], next) {
					return true
				}
			}
		}
	}
	return false
}

func (m *model) complete(a *plan.Agent, k plan.KernelRequest, mine map[uuid.UUID]resource.Slots) bool {
	sum := resource.Slots{}
	for _, s := range mine {
		sum.Add(s)
	}
	for _, name := range []string{"cuda.device", "cuda.shares", "cuda.mem"} {
		if sum[name] != k.Slots[name] {
			return false
		}
	}
	return m.shape(a, k, mine) == nil
}

// charge checks the limits after a session was placed.
func charge(limits []plan.Limit, r *plan.Request) error {
	for i := range limits {
		l := &limits[i]
		if l.ID != map[string]uuid.UUID{plan.ScopeUser: r.Owner, plan.ScopeProject: r.Project, plan.ScopeDomain: r.Domain}[l.Scope] {
			continue
		}
		used := resource.Slots{}
		used.Add(l.Used)
		l.Used = used
		l.Sessions++
		for _, k := range r.Kernels {
			l.Used.Add(k.Slots)
		}
		if l.MaxSessions != nil && l.Sessions > *l.MaxSessions {
			return fmt.Errorf("%s has %d sessions of %d", l.Scope, l.Sessions, *l.MaxSessions)
		}
		for name, n := range l.Total {
			asked := int64(0)
			for _, k := range r.Kernels {
				asked += k.Slots[name]
			}
			if asked > 0 && l.Used[name] > n {
				return fmt.Errorf("%s uses %d of %d %s", l.Scope, l.Used[name], n, name)
			}
		}
	}
	return nil
}

// replay applies all decisions and fails the test on the first wrong one.
func replay(t *testing.T, s *plan.Snapshot, decisions []plan.Decision) *model {
	t.Helper()
	m := newModel(s)
	requests := map[uuid.UUID]*plan.Request{}
	for i := range s.Pending {
		requests[s.Pending[i].SessionID] = &s.Pending[i]
	}
	limits := slices.Clone(s.Limits)
	for _, d := range decisions {
		r := requests[d.SessionID]
		if r == nil {
			t.Fatalf("decision on unknown or repeated session %s", d.SessionID)
		}
		delete(requests, d.SessionID)
		if !d.Placed() {
			if len(d.Assignments) > 0 {
				t.Fatal("waits with a place")
			}
			continue
		}
		if len(d.Assignments) != len(r.Kernels) {
			t.Fatalf("%d places for %d kernels", len(d.Assignments), len(r.Kernels))
		}
		m.before = map[uuid.UUID]bool{}
		for id := range m.used {
			m.before[id] = m.busy(id)
		}
		for i, as := range d.Assignments {
			if as.KernelID != r.Kernels[i].ID {
				t.Fatal("kernels out of order")
			}
			if err := m.apply(r, r.Kernels[i], as); err != nil {
				t.Fatalf("kernel with %v: %v", r.Kernels[i].Slots, err)
			}
		}
		m.before = nil
		if err := charge(limits, r); err != nil {
			t.Fatal(err)
		}
	}
	if len(requests) > 0 {
		t.Fatalf("%d requests without a decision", len(requests))
	}
	return m
}

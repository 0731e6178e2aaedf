package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiondependency"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
)

// began checks a launch that begins on a machine.
func (w *world) began(b *box) {
	for _, m := range w.machines {
		if old := m.kernels[b.req.KernelId]; m != b.m && old != nil && old.live() {
			w.logf("kernel %s runs on %s, and starts on %s", b.req.KernelId, m.name, b.m.name)
		}
	}
}

// soon is how long the effects of a partition can last after all connections are back: a report, a
// call, and the grace period of a container.
const soon = time.Minute

// exhausted fails the seed because of a launch that does not fit on its machine.
func (w *world) exhausted(m *machine, r *agentpb.CreateKernelRequest, device string) {
	w.fail("I1", "%s has no room on %s for kernel %s: it was allocated before it was free", m.name, device, r.KernelId)
}

// twice checks I2: no kernel has two containers for long on machines that are reachable.
func (w *world) twice() {
	for _, m := range w.machines {
		for id, b := range m.kernels {
			if !b.live() {
				continue
			}
			for _, o := range w.machines {
				other := o.kernels[id]
				if o == m || other == nil || !other.live() {
					continue
				}
				if min(time.Since(m.troubled), time.Since(o.troubled), time.Since(w.election.changed)) > soon {
					w.fail("I2", "kernel %s runs on %s and on %s", id, m.name, o.name)
				}
			}
		}
	}
}

// onMachines checks I1 on the machines, at every step.
func (w *world) onMachines() {
	for _, m := range w.machines {
		for device, slots := range m.allocated() {
			for slot, n := range slots {
				if n > m.capacity[device][slot] {
					w.fail("I1", "machine %s has allocated %d of %d %s on %s", m.name, n, m.capacity[device][slot], slot, device)
				}
			}
		}
	}
}

// quiet reports whether no session is being started or ended.
func (w *world) quiet() bool {
	return !w.plain.Session.Query().Where(entsession.StatusIn(lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared,
		lifecycle.Creating, lifecycle.Terminating)).ExistX(w.ctx)
}

// ended reports whether all sessions have ended.
func (w *world) ended() bool {
	return !w.plain.Session.Query().Where(entsession.TerminatedAtIsNil()).ExistX(w.ctx)
}

// kept checks I6: confirmed requests have taken effect, and rejected ones have not.
func (w *world) kept() {
	all := w.plain.Session.Query().WithKernels().AllX(w.ctx)
	byName := map[string]*ent.Session{}
	for _, s := range all {
		if byName[s.Name] != nil {
			w.fail("I6", "there are two sessions %s", s.Name)
		}
		byName[s.Name] = s
	}
	for _, a := range w.people.asked {
		s := byName[*a.in.Name]
		kernels := 1
		if a.in.Kernels != nil {
			kernels = *a.in.Kernels
		}
		switch {
		case s != nil && len(s.Edges.Kernels) != kernels:
			w.fail("I12", "session %s has %d of %d kernels", s.Name, len(s.Edges.Kernels), kernels)
		case a.id != uuid.Nil && (s == nil || s.ID != a.id):
			w.fail("I6", "session %s was confirmed and does not exist", *a.in.Name)
		case a.refused && a.id == uuid.Nil && s != nil:
			w.fail("I6", "session %s was rejected but exists", *a.in.Name)
		case a.ended && s != nil && !s.Status.Final():
			w.fail("I6", "the end of session %s was confirmed, and it is %s (%s)", s.Name, s.Status, s.StatusMessage)
		}
	}
}

// stuck checks I3: after all faults have ended, no session stays in a state for longer than its
// deadline, and sessions that can start do.
func (w *world) stuck() {
	for _, s := range w.plain.Session.Query().Where(entsession.TerminatedAtIsNil()).Order(entsession.ByID()).AllX(w.ctx) {
		switch {
		case s.Status == lifecycle.Running || s.Status == lifecycle.Pending:
		case s.DeadlineAt == nil || time.Since(*s.DeadlineAt) > time.Minute:
			w.fail("I3", "session %s is still %s (%s)", s.Name, s.Status, s.StatusMessage)
		}
	}
}

// empty checks I4: after the end of all sessions, nothing is allocated.
func (w *world) empty() {
	for _, s := range w.plain.Session.Query().Where(entsession.TerminatedAtIsNil()).Order(entsession.ByID()).AllX(w.ctx) {
		w.fail("I3", "session %s has not ended: it is %s (%s)", s.Name, s.Status, s.StatusMessage)
	}
	if n := w.plain.Allocation.Query().Where(allocation.FreedAtIsNil()).CountX(w.ctx); n > 0 {
		w.fail("I4", "%d allocations are left", n)
	}
	for _, m := range w.machines {
		for _, b := range m.kernels {
			if b.state.Phase != agentpb.KernelState_EXITED {
				w.fail("I4", "%s still has %s", m.name, b)
			}
		}
	}
}

func (b *box) String() string {
	return fmt.Sprintf("kernel %s, launch %d, %s", b.req.KernelId, b.req.LaunchEpoch, b.state.Phase)
}

// starved checks the other half of I3: a session that waits although it could start all the time.
// Reservations are off by then.
func (w *world) starved(before, after map[uuid.UUID]string) {
	for id, why := range after {
		if before[id] != "" {
			w.fail("I3", "%s", why)
		}
	}
}

// idle returns the waiting sessions that would fit, by a simple computation: only sessions of one
// kernel, each considered alone.
func (w *world) idle() map[uuid.UUID]string {
	out := map[uuid.UUID]string{}
	agents := w.plain.Agent.Query().Where(agent.StatusEQ(agent.StatusAlive), agent.Schedulable(true)).WithDevices().Order(agent.ByName()).AllX(w.ctx)
	free := w.free(agents)
	waiting := w.plain.Session.Query().Where(entsession.StatusEQ(lifecycle.Pending)).WithKernels().WithAgents().
		WithDependsOn(func(q *ent.SessionDependencyQuery) { q.Where(sessiondependency.Satisfied(false)) }).Order(entsession.ByID()).AllX(w.ctx)
	for _, s := range waiting {
		now := time.Now()
		if s.StartsAt != nil && s.StartsAt.After(now) || s.RetryAt != nil && s.RetryAt.After(now) || len(s.Edges.DependsOn) > 0 || len(s.Edges.Kernels) > 1 || w.limited(s) {
			continue
		}
		for _, a := range agents {
			wanted := slices.ContainsFunc(s.Edges.Agents, func(o *ent.Agent) bool { return o.ID == a.ID })
			if a.ResourceGroupID != s.ResourceGroupID || s.StrictAgents && !wanted || !fits(s.Edges.Kernels[0].Slots, free[a.ID]) {
				continue
			}
			out[s.ID] = fmt.Sprintf("session %s waits (%s), and would fit on %s", s.Name, s.StatusMessage, a.Name)
		}
	}
	return out
}

// free returns the free amounts of the agents' devices, by agent and slot.
func (w *world) free(agents []*ent.Agent) map[uuid.UUID]map[string][]int64 {
	held := map[uuid.UUID]resource.Slots{}
	for _, a := range w.plain.Allocation.Query().AllX(w.ctx) {
		if held[a.DeviceID] == nil {
			held[a.DeviceID] = resource.Slots{}
		}
		if a.FreedAt == nil {
			held[a.DeviceID][a.Slot] += a.Amount
		}
	}
	free := map[uuid.UUID]map[string][]int64{}
	for _, a := range agents {
		free[a.ID] = map[string][]int64{}
		for _, d := range a.Edges.Devices {
			if !d.Allocatable || d.Health != device.HealthHealthy {
				continue
			}
			for slot, n := range d.Capacity {
				free[a.ID][slot] = append(free[a.ID][slot], n-held[d.ID][slot])
			}
		}
	}
	return free
}

// fits reports whether the devices have the requested amount: a fraction of one device, or whole
// devices.
func fits(want resource.Slots, free map[string][]int64) bool {
	for slot, n := range want {
		left := n
		for _, f := range free[slot] {
			switch {
			case n <= 1000 || slot != "mock.shares":
				if f >= n {
					left = 0
				}
			case f == 1000:
				left -= f
			}
		}
		if left > 0 {
			return false
		}
	}
	return true
}

// limited reports whether a policy prevents the start.
func (w *world) limited(s *ent.Session) bool {
	live := w.plain.Session.Query().Where(entsession.StatusIn(lifecycle.Occupying...)).WithKernels().AllX(w.ctx)
	mine, cpu := 0, s.Slots[resource.CPU]
	for _, o := range live {
		if o.OwnerID == s.OwnerID {
			mine++
		}
		if o.ProjectID == s.ProjectID {
			cpu += o.Slots[resource.CPU] * int64(len(o.Edges.Kernels))
		}
	}
	bound := slices.ContainsFunc(w.place.people, func(p *viewer.Viewer) bool { return p.User == s.OwnerID })
	return bound && mine >= maxSessions || s.ProjectID == w.place.project && cpu > maxCPU
}

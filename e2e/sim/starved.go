package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/device"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiondependency"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
)

// starved is the other half of I3: what waits, and could start all the while,
// does not start. Reservations are off by then.
func (w *world) starved(before, after map[uuid.UUID]string) {
	for id, why := range after {
		if before[id] != "" {
			w.fail("I3", "%s", why)
		}
	}
}

// idle finds what waits and would fit, by its own plain arithmetic: sessions of
// one kernel, each on its own.
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

// free is what the devices of agents have left, by agent and slot.
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

// fits reports whether the devices have what is asked for: a part of one, or
// whole ones.
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

// limited reports whether a policy is in the way.
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

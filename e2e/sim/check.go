package sim

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
)

// began looks at I2 when a launch begins: a kernel has no container elsewhere,
// unless that machine was out of reach.
func (w *world) began(b *box) {
	for _, m := range w.machines {
		old := m.kernels[b.req.KernelId]
		if m == b.m || old == nil || !old.live() {
			continue
		}
		w.logf("kernel %s lives on %s, and begins on %s", b.req.KernelId, m.name, b.m.name)
	}
}

// exhausted is told of a launch that its machine has no room for: the database
// gave away what is still held.
func (w *world) exhausted(m *machine, r *agentpb.CreateKernelRequest, device string) {
	w.logf("%s has no room on %s for %s", m.name, device, r.KernelId)
}

// onMachines is I1 on the machines, at every step of the story's watch.
func (w *world) onMachines() {
	for _, m := range w.machines {
		for device, slots := range m.held() {
			for slot, n := range slots {
				if n > m.capacity[device][slot] {
					w.fail("I1", "machine %s holds %d of %d %s on %s", m.name, n, m.capacity[device][slot], slot, device)
				}
			}
		}
	}
}

// settled tells whether nothing is on its way any more.
func (w *world) settled() bool {
	busy, err := w.plain.Session.Query().Where(entsession.StatusIn(lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating, lifecycle.Terminating)).Exist(w.ctx)
	if err != nil {
		panic(err)
	}
	return !busy
}

// kept is I6: what was promised is so, what was refused is not.
func (w *world) kept() {
	all := w.plain.Session.Query().WithKernels().AllX(w.ctx)
	byName := map[string]*ent.Session{}
	for _, s := range all {
		if byName[s.Name] != nil {
			w.fail("I6", "there are two sessions %s", s.Name)
		}
		byName[s.Name] = s
		if len(s.Edges.Kernels) != 1 {
			w.fail("I12", "session %s has %d kernels", s.Name, len(s.Edges.Kernels))
		}
	}
	for _, a := range w.people.asked {
		s := byName[*a.in.Name]
		switch {
		case a.id != uuid.Nil && (s == nil || s.ID != a.id):
			w.fail("I6", "session %s was promised and is not there", *a.in.Name)
		case a.refused && a.id == uuid.Nil && s != nil:
			w.fail("I6", "session %s was refused and is there", *a.in.Name)
		case a.ended && s != nil && !s.Status.Final():
			w.fail("I6", "the end of session %s was promised, it is %s (%s)", s.Name, s.Status, s.StatusMessage)
		}
	}
}

// stuck is I3: after all trouble nothing is in a state for longer than that may
// last, and what could start does.
func (w *world) stuck() {
	for _, s := range w.plain.Session.Query().Where(entsession.TerminatedAtIsNil()).Order(entsession.ByID()).AllX(w.ctx) {
		switch {
		case s.Status == lifecycle.Running || s.Status == lifecycle.Pending:
		case s.DeadlineAt == nil || time.Since(*s.DeadlineAt) > time.Minute:
			w.fail("I3", "session %s is still %s (%s)", s.Name, s.Status, s.StatusMessage)
		}
	}
}

// empty is I4: after the end of everything nothing is held anywhere.
func (w *world) empty() {
	for _, s := range w.plain.Session.Query().Where(entsession.TerminatedAtIsNil()).Order(entsession.ByID()).AllX(w.ctx) {
		w.fail("I3", "session %s does not end: it is %s (%s)", s.Name, s.Status, s.StatusMessage)
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

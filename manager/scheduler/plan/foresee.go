package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

const (
	// maxForeseen limits the requests of a queue whose start is estimated.
	maxForeseen = 20
	// foreseeing limits the devices and requests that are examined for this, over all moments.
	// Each takes about 2 microseconds.
	foreseeing = 20_000
)

// foresee estimates when the first requests of every queue start: it advances time from end to
// end of the running sessions, and plans at each moment as the scheduler will. The estimate
// holds if sessions end when they must and no new requests arrive. It assumes that a session
// without lifetime never ends, and stops where the result is unknown, as at a preemption. The
// zero time means never; a request that is not in the result has no estimate.
func foresee(s *Snapshot, decisions []Decision) map[uuid.UUID]time.Time {
	f := &foresight{now: *s, starts: map[uuid.UUID]time.Time{}, asks: map[uuid.UUID]bool{}}
	for _, g := range s.Groups {
		if g.Order != OrderFairShare { // fair share depends on future usage
			f.guess = append(f.guess, g.ID)
		}
	}
	for i := range s.Agents {
		f.devices += len(s.Agents[i].Devices)
	}
	if f.devices+len(s.Pending) > foreseeing {
		return nil
	}
	for i := range decisions {
		if w := decisions[i].Waiting; w != nil && w.Position <= maxForeseen {
			f.asks[decisions[i].SessionID] = true
		}
	}
	for len(f.asks) > 0 && f.carry(decisions) && f.pass(decisions) {
		decisions = Plan(&f.now)
	}
	return f.starts
}

// foresight is the future state of a cluster.
type foresight struct {
	now     Snapshot
	guess   []uuid.UUID        // groups whose order can be predicted
	asks    map[uuid.UUID]bool // requests to estimate
	starts  map[uuid.UUID]time.Time
	devices int
	work    int
	later   bool // later than the start of the estimate
}

// carry applies decisions; false if their result is unknown.
func (f *foresight) carry(decisions []Decision) bool {
	var placed []*Decision
	requests := map[uuid.UUID]*Request{}
	for i := range f.now.Pending {
		requests[f.now.Pending[i].SessionID] = &f.now.Pending[i]
	}
	for i := range decisions {
		d := &decisions[i]
		r := requests[d.SessionID]
		switch {
		case len(d.Victims) > 0 || r == nil || r.Room != nil:
			return false
		case d.Placed():
			placed = append(placed, d)
			if f.later && f.asks[d.SessionID] && slices.Contains(f.guess, r.Group) {
				f.starts[d.SessionID] = f.now.Now
			}
			delete(f.asks, d.SessionID)
		}
	}
	f.now = *started(&f.now, placed, requests)
	return true
}

// pass advances to the next moment at which a request can start; false if there is none, or if
// the limit is reached.
func (f *foresight) pass(decisions []Decision) bool {
	var next time.Time
	sooner := func(at time.Time) {
		if at.After(f.now.Now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for i := range f.now.Running {
		sooner(f.now.Running[i].Ends) // an overdue session is assumed to end by then
	}
	holdAfter := map[uuid.UUID]time.Duration{}
	for _, g := range f.now.Groups {
		holdAfter[g.ID] = cmp.Or(g.HoldAfter, DefaultHoldAfter)
	}
	waits := map[uuid.UUID]*report.Pending{}
	for i := range decisions {
		waits[decisions[i].SessionID] = decisions[i].Waiting
	}
	for i := range f.now.Pending {
		r := &f.now.Pending[i]
		if at := r.until(f.now.Now); at != nil {
			sooner(*at)
		}
		if w := waits[r.SessionID]; w != nil && w.Stage == report.StageRoom && holdAfter[r.Group] > 0 {
			sooner(r.Created.Add(holdAfter[r.Group]))
		}
	}
	if next.IsZero() {
		f.give()
		return false
	}
	f.now.Now, f.later = next, true
	for _, x := range slices.Clone(f.now.Running) {
		if !x.Ends.IsZero() && !x.Ends.After(next) {
			f.now = *Without(&f.now, &x)
			f.work += len(f.now.Agents)
		}
	}
	f.work += f.devices + len(f.now.Pending)
	return f.work <= foreseeing
}

// give marks the remaining requests as never starting.
func (f *foresight) give() {
	for i := range f.now.Pending {
		if r := &f.now.Pending[i]; f.asks[r.SessionID] && slices.Contains(f.guess, r.Group) {
			f.starts[r.SessionID] = time.Time{}
		}
	}
}

// started returns the snapshot after the decided requests have started.
func started(s *Snapshot, placed []*Decision, requests map[uuid.UUID]*Request) *Snapshot {
	if len(placed) == 0 {
		return s
	}
	out := *s
	out.Running, out.Holdings, out.Limits = slices.Clone(s.Running), slices.Clone(s.Holdings), slices.Clone(s.Limits)
	ledger := NewLedger(out.Limits)
	taken, got, starts := map[uuid.UUID]resource.Slots{}, map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	for _, d := range placed {
		r := requests[d.SessionID]
		starts[r.SessionID] = true
		x := Running{
			SessionID: r.SessionID, Owner: r.Owner, Project: r.Project, Domain: r.Domain, Group: r.Group,
			Slots: totalOf(r), Priority: r.Priority, Since: s.Now,
		}
		if r.Together != nil {
			x.Together = r.Together.ID
		}
		if r.Lifetime > 0 {
			x.Ends = s.Now.Add(r.Lifetime)
		}
		for _, a := range d.Assignments {
			x.Holds = append(x.Holds, a.Allocs...)
			got[a.AgentID] = true
		}
		for _, h := range x.Holds {
			if taken[h.DeviceID] == nil {
				taken[h.DeviceID] = resource.Slots{}
			}
			taken[h.DeviceID][h.Slot] += h.Amount
		}
		out.Running = append(out.Running, x)
		out.Holdings = append(out.Holdings, Holding{Group: r.Group, Domain: r.Domain, Project: r.Project, Owner: r.Owner, Slots: x.Slots})
		ledger.Charge(r)
	}
	for _, accounts := range ledger {
		for _, acc := range accounts {
			acc.Used, acc.Sessions = acc.used, acc.sessions
		}
	}
	out.Pending = slices.DeleteFunc(slices.Clone(s.Pending), func(r Request) bool { return starts[r.SessionID] })
	out.Agents = slices.Clone(s.Agents)
	for i := range out.Agents {
		a := &out.Agents[i]
		if !got[a.ID] {
			continue
		}
		a.LastUsed, a.Devices = s.Now, slices.Clone(a.Devices)
		for j := range a.Devices {
			if more := taken[a.Devices[j].ID]; more != nil {
				used := resource.Slots{}
				used.Add(a.Devices[j].Used)
				used.Add(more)
				a.Devices[j].Used = used
			}
		}
	}
	return &out
}

// future is a future state of some agents. Until it is closed, they stay in the classes of
// their present state.
type future struct {
	q       *queue
	now     map[int][][]int64
	classes map[int]*classes
	mark    int
}

func (q *queue) future() *future {
	return &future{q: q, now: map[int][][]int64{}, classes: map[int]*classes{}, mark: len(q.c.taken)}
}

// open sets agents to their state after all ending sessions have ended and promised devices
// are taken.
func (f *future) open(agents []int) {
	for _, i := range agents {
		f.set(i, f.q.soon(i))
	}
}

// empty sets agents to their state without sessions.
func (f *future) empty(agents []int) {
	for _, i := range agents {
		used := make([][]int64, len(f.q.c.agents[i].devices))
		for j := range used {
			used[j] = make([]int64, len(f.q.c.slots))
		}
		f.set(i, used)
	}
}

func (f *future) set(i int, used [][]int64) {
	a := &f.q.c.agents[i]
	f.classes[i], a.classes = a.classes, nil
	f.now[i] = f.q.c.become(i, used)
}

// release frees the devices of a session on the open agents, and returns these agents.
func (f *future) release(holds []taking) []int { return f.change(holds, -1) }

// hold reverts release.
func (f *future) hold(holds []taking) { f.change(holds, 1) }

func (f *future) change(holds []taking, sign int64) (changed []int) {
	for _, h := range holds {
		if f.now[h.agent] == nil {
			continue
		}
		a := &f.q.c.agents[h.agent]
		f.q.c.charge(a, &a.devices[h.device], h.slot, sign*h.amount)
		if !slices.Contains(changed, h.agent) {
			changed = append(changed, h.agent)
		}
	}
	for _, i := range changed {
		f.q.c.refresh(&f.q.c.agents[i])
	}
	return changed
}

// fit places kernels on agents, in this order, and returns the devices of each; nil unless all
// of them fit.
func (f *future) fit(agents []int, shapes []*shape) (needs [][]taking) {
	g := f.q.c.gangSearch(shapes)
	g.look(agents)
	return g.fit()
}

// could reports whether kernels fit, and takes nothing.
func (f *future) could(agents []int, shapes []*shape) bool {
	mark := len(f.q.c.taken)
	ok := f.fit(agents, shapes) != nil
	f.q.c.undo(mark)
	return ok
}

// close restores the present state of the agents.
func (f *future) close() {
	f.q.c.rollback(f.mark)
	for _, i := range slices.Sorted(maps.Keys(f.now)) {
		f.q.c.become(i, f.now[i])
		f.q.c.agents[i].classes = f.classes[i]
	}
}

// usage copies the used amounts of an agent's devices.
func (c *cluster) usage(i int) [][]int64 {
	used := make([][]int64, len(c.agents[i].devices))
	for j := range used {
		used[j] = slices.Clone(c.agents[i].devices[j].used)
	}
	return used
}

// become exchanges all used amounts of an agent.
func (c *cluster) become(i int, used [][]int64) (before [][]int64) {
	a := &c.agents[i]
	for j := range a.devices {
		before = append(before, a.devices[j].used)
		c.swap(a, &a.devices[j], used[j])
	}
	c.refresh(a)
	return before
}

// most returns the maximum of each amount.
func most(a, b [][]int64) [][]int64 {
	out := make([][]int64, len(a))
	for j := range a {
		out[j] = slices.Clone(a[j])
		if b == nil {
			continue
		}
		for s, amount := range b[j] {
			out[j][s] = max(out[j][s], amount)
		}
	}
	return out
}

// add adds takings of an agent to used amounts.
func add(used [][]int64, i int, takings []taking, sign int64) {
	if used == nil {
		return
	}
	for _, t := range takings {
		if t.agent == i {
			used[t.device][t.slot] += sign * t.amount
		}
	}
}

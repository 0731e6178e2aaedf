package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Where the group allows it, a request that has no room may end sessions of a
// lower priority: preemptible ones that have run long enough, and only if the
// request then has all the room it asks for. Of the ways to do so that are looked
// at, it takes the one with the fewest victims, and then with those that have run
// least: for a request of one kernel all agents are compared. Which victims of an
// agent are spared is found by trying one alone, and else by sparing one after the
// other for as long as the room suffices, once those that have run longest first
// and once those that hold least; with many small victims another choice might
// do with fewer. None is ended that could be spared.
//
// What the victims give back is promised to the request until it has started.

// Preemption says which sessions of a group may be ended for others.
type Preemption struct {
	Scope string        // ScopeUser, ScopeProject, ScopeDomain: sessions of the same; ScopeGroup: all
	After time.Duration // that a session runs before it may be ended
}

// ScopeGroup is all of a resource group.
const ScopeGroup = "group"

// covers tells whether a session may be ended for a request.
func (p *Preemption) covers(r *Request, x *Running, now time.Time) bool {
	if !x.Preemptible || x.Leaving || x.Priority >= r.Priority || x.Since.IsZero() || now.Sub(x.Since) < p.After {
		return false
	}
	switch p.Scope {
	case ScopeUser:
		return x.Owner == r.Owner
	case ScopeProject:
		return x.Project == r.Project
	case ScopeDomain:
		return x.Domain == r.Domain
	}
	return p.Scope == ScopeGroup
}

// victims are sessions whose end makes room on agents.
type victims struct {
	list []live
	on   []int
	ran  time.Duration
}

func (v *victims) better(o *victims) bool {
	return o == nil || cmp.Or(cmp.Compare(len(v.list), len(o.list)), cmp.Compare(v.ran, o.ran)) < 0
}

// preempt makes room for a request, and promises it that.
func (q *queue) preempt(g *group, r *Request, shapes []*shape) (*report.Room, []uuid.UUID) {
	if g.src.Preemption == nil {
		return nil, nil
	}
	var list []live
	for _, l := range q.lives(g.src.ID) {
		if !q.doomed[l.SessionID] && g.src.Preemption.covers(r, l.Running, q.now) {
			list = append(list, l)
		}
	}
	if len(list) == 0 && len(q.leaving) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(list, func(a, b live) int { return b.Since.Compare(a.Since) })
	f := q.future()
	best := f.choose(q.open(shapes[0].profile.agents), list, shapes)
	var needs [][]taking
	if best != nil {
		for _, l := range best.list {
			f.release(l.holds)
		}
		needs = f.fit(best.on, shapes)
	}
	f.close()
	if needs == nil {
		return nil, nil
	}
	for _, l := range best.list {
		q.doom(l)
	}
	room := &report.Room{Since: q.now, Sessions: []uuid.UUID{}}
	for _, l := range best.list {
		room.Sessions = append(room.Sessions, l.SessionID)
	}
	for k, list := range needs {
		for _, t := range list {
			device := q.c.agents[t.agent].devices[t.device].src.ID
			room.Parts = append(room.Parts, report.Part{Kernel: r.Kernels[k].ID, Device: device, Slot: q.c.slots[t.slot].name, Amount: t.amount})
		}
	}
	q.vow(r, &promise{needs: needs, room: room})
	return room, slices.Clone(room.Sessions)
}

// open are those agents of which nothing is reserved for the head of the queue.
func (q *queue) open(agents []int) []int {
	return slices.DeleteFunc(slices.Clone(agents), func(i int) bool {
		k := q.kept(i)
		return k != nil && k.then != nil
	})
}

func agentsOf(takings []taking) (list []int) {
	for _, t := range takings {
		if !slices.Contains(list, t.agent) {
			list = append(list, t.agent)
		}
	}
	return list
}

// choose finds whom to end, out of a list with those first that have run least.
func (f *future) choose(agents []int, list []live, shapes []*shape) (best *victims) {
	if len(shapes) > 1 {
		f.open(agents)
		return f.together(agents, list, shapes)
	}
	by := map[int][]live{}
	for _, l := range list {
		for _, i := range agentsOf(l.holds) {
			by[i] = append(by[i], l)
		}
	}
	for _, i := range agents {
		if by[i] == nil && f.q.leaving[i] == nil {
			continue // it is as it was when there was no room
		}
		f.open([]int{i})
		if v := f.fewest([]int{i}, by[i], shapes); v != nil && v.better(best) {
			best = v
		}
	}
	return best
}

// together makes room for kernels on several agents: on those that have it
// already, and then where most can be freed.
func (f *future) together(agents []int, list []live, shapes []*shape) *victims {
	free := f.able(nil, agents, shapes)
	for _, l := range list {
		f.release(l.holds)
	}
	for _, i := range agents {
		if !slices.Contains(free, i) {
			free = append(free, i)
		}
	}
	mark := len(f.q.c.taken)
	on := agentsOf(slices.Concat(f.fit(free, shapes)...))
	f.q.c.undo(mark)
	for _, l := range list {
		f.hold(l.holds)
	}
	if on == nil {
		return nil
	}
	mine := slices.DeleteFunc(slices.Clone(list), func(l live) bool {
		return !slices.ContainsFunc(l.holds, func(h taking) bool { return slices.Contains(on, h.agent) })
	})
	return f.fewest(on, mine, shapes)
}

// fewest finds which of some sessions have to end so that kernels have room on
// agents; nil if even the end of all is not enough.
func (f *future) fewest(on []int, list []live, shapes []*shape) *victims {
	if f.could(on, shapes) {
		return &victims{on: on}
	}
	for _, l := range list {
		f.release(l.holds)
	}
	enough := f.could(on, shapes)
	for _, l := range list {
		f.hold(l.holds)
	}
	if !enough {
		return nil
	}
	for _, l := range list {
		f.release(l.holds)
		enough := f.could(on, shapes)
		f.hold(l.holds)
		if enough {
			return f.q.victims([]live{l}, on)
		}
	}
	longest := slices.Clone(list)
	slices.Reverse(longest)
	smallest := slices.Clone(longest)
	slices.SortStableFunc(smallest, func(a, b live) int { return f.size(a, on, shapes) - f.size(b, on, shapes) })
	best := f.q.victims(f.without(longest, on, shapes), on)
	if other := f.q.victims(f.without(smallest, on, shapes), on); other.better(best) {
		best = other
	}
	return best
}

// size is how much a session has of what kernels lack, in thousandths of it.
func (f *future) size(l live, on []int, shapes []*shape) (sum int) {
	for _, h := range l.holds {
		for _, n := range shapes[0].needs {
			if n.slot == h.slot && slices.Contains(on, h.agent) {
				sum += int(1000 * h.amount / n.amount)
			}
		}
	}
	return sum
}

// without spares one session after the other for as long as kernels have room,
// and returns those that have to end.
func (f *future) without(list []live, on []int, shapes []*shape) (ended []live) {
	for _, l := range list {
		f.release(l.holds)
	}
	for _, l := range list {
		if f.hold(l.holds); !f.could(on, shapes) {
			f.release(l.holds)
			ended = append(ended, l)
		}
	}
	for _, l := range ended {
		f.hold(l.holds)
	}
	return ended
}

func (q *queue) victims(list []live, on []int) *victims {
	v := &victims{list: list, on: on}
	for _, l := range list {
		v.ran += q.now.Sub(l.Since)
	}
	return v
}

// doom notes that a session is to end.
func (q *queue) doom(l live) {
	q.doomed[l.SessionID] = true
	q.leave(l)
	for i := range q.keeps {
		if k := q.kept(i); k != nil {
			add(k.soon, i, l.holds, -1)
		}
	}
}

// promise is what a request is to take once what leaves is gone.
type promise struct {
	needs [][]taking // by kernel
	extra []taking   // see alone
	room  *report.Room
}

func (p *promise) all() []taking { return slices.Concat(p.needs...) }

// vow gives a promise.
func (q *queue) vow(r *Request, p *promise) {
	needs := p.all()
	for _, i := range agentsOf(needs) {
		k := q.keep(i)
		if k.soon == nil {
			k.soon = q.soon(i)
		}
		add(k.soon, i, needs, 1)
		extra := q.c.alone(i, k.soon, needs)
		add(k.soon, i, extra, 1)
		p.extra = append(p.extra, extra...)
	}
	q.promises[r.SessionID] = p
}

// prepare begins a pass: what is being made free for a request is promised to it
// before anybody else gets room.
func (q *queue) prepare() {
	q.ready = true
	q.live, q.leaving, q.placed, q.members = nil, nil, nil, nil
	clear(q.keeps)
	clear(q.doomed)
	clear(q.promises)
	var list []*Request
	for i := range q.src.Pending {
		if r := &q.src.Pending[i]; r.Room != nil {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, before)
	for _, r := range list {
		q.renew(r)
	}
}

// renew promises a request again what it was promised, unless that cannot be kept
// any more.
func (q *queue) renew(r *Request) {
	g := q.groups[r.Group]
	if g == nil || r.held(q.now) != "" || len(q.limits.Reached(r)) > 0 {
		return
	}
	p := q.recall(r)
	if p == nil {
		return
	}
	leaving := false
	for _, i := range agentsOf(p.all()) {
		soon := q.soon(i)
		add(soon, i, p.all(), 1)
		for j := range soon {
			for s, amount := range soon[j] {
				if amount > q.c.agents[i].devices[j].capacity[s] {
					return
				}
			}
		}
		leaving = leaving || len(q.leaving[i]) > 0
	}
	if leaving || q.due(p) {
		q.vow(r, p)
		q.limits.Charge(r)
	}
}

// recall reads a promise; nil when what was promised is not there any more, or
// not what the request asks for.
func (q *queue) recall(r *Request) *promise {
	p := &promise{room: r.Room, needs: make([][]taking, len(r.Kernels))}
	q.lives(r.Group)
	agents := q.profileOf(q.groups[r.Group], r).agents
	for _, part := range r.Room.Parts {
		at, here := q.spots[part.Device]
		slot, known := q.c.number[part.Slot]
		k := slices.IndexFunc(r.Kernels, func(k KernelRequest) bool { return k.ID == part.Kernel })
		if !here || !known || k < 0 || !slices.Contains(agents, at.agent) || !q.c.agents[at.agent].devices[at.device].usable {
			return nil
		}
		p.needs[k] = append(p.needs[k], taking{at.agent, at.device, slot, part.Amount})
	}
	for k := range r.Kernels {
		got := resource.Slots{}
		for _, t := range p.needs[k] {
			got[q.c.slots[t.slot].name] += t.amount
		}
		for name, amount := range r.Kernels[k].Slots {
			if got[name] != amount {
				return nil
			}
		}
	}
	return p
}

// due tells whether what was promised is free: nothing is used of its devices but
// what may be once all that leaves is gone.
func (q *queue) due(p *promise) bool {
	for _, i := range agentsOf(p.all()) {
		soon := q.soon(i)
		for _, t := range p.all() {
			if t.agent != i {
				continue
			}
			for s, used := range q.c.agents[i].devices[t.device].used {
				if used > soon[t.device][s] {
					return false
				}
			}
		}
	}
	return true
}

// redeem gives a request what was promised to it, if that is free by now.
func (q *queue) redeem(r *Request, p *promise, d *Decision) bool {
	q.promised(p, -1)
	if !q.due(p) {
		q.promised(p, 1)
		return false
	}
	for k, needs := range p.needs {
		mark := len(q.c.taken)
		for _, t := range needs {
			q.c.take(t.agent, t.device, t.slot, t.amount)
		}
		d.Assignments = append(d.Assignments, q.c.assignment(r.Kernels[k].ID, mark))
	}
	for _, i := range agentsOf(p.all()) {
		q.turn++
		q.c.agents[i].last = q.now.Add(q.turn)
		q.c.refresh(&q.c.agents[i])
	}
	delete(q.promises, r.SessionID)
	return true
}

// promised puts a promise into what is kept of its agents, or takes it out.
func (q *queue) promised(p *promise, sign int64) {
	for _, i := range agentsOf(p.all()) {
		if k := q.kept(i); k != nil {
			for _, takings := range [][]taking{p.all(), p.extra} {
				add(k.soon, i, takings, sign)
				add(k.then, i, takings, sign)
			}
		}
	}
}

// making says that room is being made.
func making(room *report.Room) report.Pending {
	p := report.Pending{Stage: report.StageRoom, Room: room}
	switch n := len(room.Sessions); n {
	case 0:
		p.Summary = "Sessions end that are in its way; it starts when they have."
	case 1:
		p.Summary = "A session of a lower priority ends for it; it starts when that has."
	default:
		p.Summary = fmt.Sprintf("%d sessions of a lower priority end for it; it starts when they have.", n)
	}
	return p
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
)

// If the group allows it, a request without room can end sessions of a lower priority:
// preemptible ones that have run long enough, and only if the request then fits. Among the
// examined ways, it takes the one with the fewest victims, then with the victims that have run
// the shortest time; for a request of one kernel, all agents are compared. The victims on an
// agent are reduced by trying each one alone, and otherwise by sparing one after the other as
// long as the request fits, once starting with those that have run longest and once with those
// with the smallest allocations. With many small victims, another choice might need fewer. No
// session ends that could be spared.
//
// The freed devices are promised to the request until it has started.

// Preemption configures which sessions of a group can be ended for others.
type Preemption struct {
	Scope string        // ScopeUser, ScopeProject, ScopeDomain: sessions of the same; ScopeGroup: all
	After time.Duration // time that a session runs before it can be ended
}

// ScopeGroup is all of a resource group.
const ScopeGroup = "group"

// covers reports whether a session can be ended for a request.
func (p *Preemption) covers(r *Request, x *Running, now time.Time) bool {
	if !x.Preemptible || x.Leaving || x.Priority >= r.Priority || x.Since.IsZero() || now.Sub(x.Since) < p.After {
		return false
	}
	same := &Request{Owner: x.Owner, Project: x.Project, Domain: x.Domain, Group: x.Group}
	return p.whose(same) == p.whose(r)
}

// whose returns the owner of sessions that can be ended for a request.
func (p *Preemption) whose(r *Request) uuid.UUID {
	switch p.Scope {
	case ScopeUser:
		return r.Owner
	case ScopeProject:
		return r.Project
	case ScopeDomain:
		return r.Domain
	}
	return r.Group
}

// evictable returns the sessions of a group that can be ended at all.
func (q *queue) evictable(g *group) []live {
	lives := q.lives(g.src.ID)
	if g.evictable == nil {
		g.evictable = []live{}
		for _, l := range lives {
			if l.Preemptible && !l.Leaving {
				g.evictable = append(g.evictable, l)
			}
		}
	}
	return g.evictable
}

// victims are sessions whose end frees enough on agents.
type victims struct {
	list []live
	on   []int
	ran  time.Duration
}

func (v *victims) better(o *victims) bool {
	return o == nil || cmp.Or(cmp.Compare(len(v.list), len(o.list)), cmp.Compare(v.ran, o.ran)) < 0
}

// preempt chooses victims for a request, and promises it their devices.
func (q *queue) preempt(g *group, r *Request, shapes []*shape) (*report.Room, []uuid.UUID) {
	if g.src.Preemption == nil {
		return nil, nil
	}
	key := fmt.Sprint(keyOf(shapes), r.Priority, g.src.Preemption.whose(r))
	if q.vain[key] {
		return nil, nil
	}
	var list []live
	for _, l := range q.evictable(g) {
		if !q.victims[l.SessionID] && g.src.Preemption.covers(r, l.Running, q.now) {
			list = append(list, l)
		}
	}
	if len(list) == 0 && len(q.leaving) == 0 {
		q.vain[key] = true
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
		q.vain[key] = true
		return nil, nil
	}
	for _, l := range best.list {
		q.addVictim(l)
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

// open returns the agents without reservations.
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

// choose chooses the sessions to end from a list that is ordered by running time.
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
			continue // unchanged since the request did not fit
		}
		f.open([]int{i})
		if v := f.fewest([]int{i}, by[i], shapes); v != nil && v.better(best) {
			best = v
		}
	}
	return best
}

// together frees devices for kernels on several agents: on those that have room already, and
// then on those where most can be freed.
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

// able adds the agents that have room for at least one of the kernels to a list.
func (f *future) able(list, agents []int, shapes []*shape) []int {
	for _, i := range agents {
		if slices.Contains(list, i) {
			continue
		}
		if slices.ContainsFunc(shapes, func(s *shape) bool { return f.could([]int{i}, []*shape{s}) }) {
			list = append(list, i)
		}
	}
	return list
}

// fewest returns which of some sessions must end so that kernels fit on agents; nil if ending
// all is not enough.
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
			return f.q.victimsOn([]live{l}, on)
		}
	}
	longest := slices.Clone(list)
	slices.Reverse(longest)
	smallest := slices.Clone(longest)
	slices.SortStableFunc(smallest, func(a, b live) int { return f.size(a, on, shapes) - f.size(b, on, shapes) })
	best := f.q.victimsOn(f.without(longest, on, shapes), on)
	if other := f.q.victimsOn(f.without(smallest, on, shapes), on); other.better(best) {
		best = other
	}
	return best
}

// size returns how much of the missing amounts a session has allocated, in thousandths.
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

// without spares one session after the other as long as the kernels fit, and returns the
// sessions that must end.
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

func (q *queue) victimsOn(list []live, on []int) *victims {
	v := &victims{list: list, on: on}
	for _, l := range list {
		v.ran += q.now.Sub(l.Since)
	}
	return v
}

// addVictim records that a session is to end.
func (q *queue) addVictim(l live) {
	q.victims[l.SessionID] = true
	q.leave(l)
	for i := range q.keeps {
		if k := q.kept(i); k != nil {
			add(k.soon, i, l.holds, -1)
		}
	}
}

// making reports that other sessions are being ended to make room.
func making(room *report.Room) report.Pending {
	p := report.Pending{Stage: report.StageRoom, Room: room}
	switch n := len(room.Sessions); n {
	case 0:
		p.Summary = "The session starts when the sessions that use its devices have ended."
	case 1:
		p.Summary = "The session starts when one session of a lower priority has been ended for it."
	default:
		p.Summary = fmt.Sprintf("The session starts when %d sessions of a lower priority have been ended for it.", n)
	}
	return p
}

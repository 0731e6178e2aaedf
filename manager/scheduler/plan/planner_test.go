package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// life is a cluster on which time passes, and a long-lived planner.
type life struct {
	*world
	s       *plan.Snapshot
	p       plan.Planner
	change  plan.Change
	lodgers []lodger
	users   []uuid.UUID
	n       int
}

// lodger is a session that was placed.
type lodger struct {
	request  plan.Request
	decision plan.Decision
}

func newLife(w *world, s *plan.Snapshot) *life {
	l := &life{world: w, s: s}
	for i := range s.Groups {
		s.Groups[i].Order = pick(w, plan.OrderFIFO, plan.OrderFIFO, plan.OrderLIFO, plan.OrderDRF)
	}
	for _, lim := range s.Limits {
		if lim.Scope == plan.ScopeUser {
			l.users = []uuid.UUID{lim.ID, w.id(), w.id()}
		}
	}
	l.change.All = true
	return l
}

// happen makes one random change.
func (l *life) happen() {
	switch n := l.IntN(10); {
	case n < 4:
		l.n++
		r := l.request(l.s, l.n, l.users, l.s.Limits[1].ID, l.s.Limits[2].ID)
		r.Created = l.s.Now
		if l.chance(20) {
			r.StartsAt = l.s.Now.Add(time.Duration(l.IntN(5)) * time.Minute)
		}
		l.s.Pending = append(l.s.Pending, r)
		l.change.New = append(l.change.New, r)
	case n < 7 && len(l.lodgers) > 0:
		l.end(l.IntN(len(l.lodgers)))
	case n < 8 && len(l.s.Pending) > 0:
		i := l.IntN(len(l.s.Pending))
		gone := l.s.Pending[i].SessionID
		l.change.Gone = append(l.change.Gone, gone)
		l.change.New = slices.DeleteFunc(l.change.New, func(r plan.Request) bool { return r.SessionID == gone })
		l.s.Pending = slices.Delete(l.s.Pending, i, i+1)
	case n < 9:
		l.s.Now = l.s.Now.Add(time.Duration(l.IntN(120)) * time.Second)
	case len(l.s.Agents) > 0 && l.chance(30):
		a := &l.s.Agents[l.IntN(len(l.s.Agents))]
		a.Schedulable = !a.Schedulable
		l.change.All = true
	}
}

// end frees the allocations of a session.
func (l *life) end(i int) {
	r := l.lodgers[i]
	l.lodgers = slices.Delete(l.lodgers, i, i+1)
	l.book(r, -1)
	for _, a := range r.decision.Assignments {
		l.change.Agents = append(l.change.Agents, a.AgentID)
	}
	l.change.Limits = true
}

// book adds the allocations of a session to the used amounts, or subtracts them.
func (l *life) book(r lodger, sign int64) {
	for _, as := range r.decision.Assignments {
		for _, h := range as.Allocs {
			d := l.device(h.DeviceID)
			d.Used = d.Used.Clone()
			if d.Used == nil {
				d.Used = map[string]int64{}
			}
			d.Used[h.Slot] += sign * h.Amount
		}
	}
	for i := range l.s.Limits {
		lim := &l.s.Limits[i]
		if lim.ID != r.request.Owner && lim.ID != r.request.Project && lim.ID != r.request.Domain {
			continue
		}
		for _, k := range r.request.Kernels {
			for name, amount := range k.Slots {
				lim.Used[name] += sign * amount
			}
		}
		lim.Sessions += int(sign)
	}
}

func (l *life) device(id uuid.UUID) *plan.Device {
	for i := range l.s.Agents {
		for j := range l.s.Agents[i].Devices {
			if d := &l.s.Agents[i].Devices[j]; d.ID == id {
				return d
			}
		}
	}
	return nil
}

// decide lets the planner decide, and checks what it places. Some of the placements are not
// committed.
func (l *life) decide(t *testing.T) []plan.Decision {
	t.Helper()
	decisions := l.p.Decide(l.s, l.change)
	l.change = plan.Change{}
	about := *l.s
	about.Pending = nil
	for _, d := range decisions {
		r := find(l.s, d.SessionID)
		if r == nil {
			t.Fatalf("a decision on %s, which does not wait", d.SessionID)
		}
		about.Pending = append(about.Pending, *r)
	}
	replay(t, &about, decisions)
	for _, d := range decisions {
		if !d.Placed() {
			continue
		}
		r := lodger{*find(l.s, d.SessionID), d}
		if l.chance(10) { // the commit left this placement out
			l.change.New = append(l.change.New, r.request)
			l.change.Limits = true
			for _, a := range d.Assignments {
				l.change.Agents = append(l.change.Agents, a.AgentID)
			}
			continue
		}
		l.book(r, 1)
		l.lodgers = append(l.lodgers, r)
		l.s.Pending = slices.DeleteFunc(l.s.Pending, func(p plan.Request) bool { return p.SessionID == d.SessionID })
	}
	return decisions
}

// After every change, a session that the planner leaves waiting would also wait if all decisions
// were made from scratch.
func TestPlannerKeepsUp(t *testing.T) {
	compared, placed, partial := 0, 0, 0
	worlds(t, func(t *testing.T, w *world, s *plan.Snapshot) {
		l := newLife(w, s)
		for range 25 {
			for range w.IntN(3) {
				l.happen()
			}
			review := l.chance(20)
			l.change.Review = review
			decisions := l.decide(t)
			if len(decisions) < len(s.Pending) {
				partial++
			}
			if len(l.change.New) > 0 {
				continue // a placement was decided and not committed
			}
			fresh := plan.Plan(s)
			gang := func(d plan.Decision) bool { return len(find(s, d.SessionID).Kernels) > 1 }
			if anyHeld(s) || slices.ContainsFunc(fresh, func(d plan.Decision) bool { return d.Placed() && gang(d) }) {
				continue // reservations depend on the time, and the room for a gang depends on where its first kernel was tried
			}
			compared++
			for _, d := range fresh {
				if d.Placed() {
					t.Fatalf("%+v waits and has room: %+v", find(s, d.SessionID), d)
				}
			}
			if !review || slices.ContainsFunc(decisions, func(d plan.Decision) bool { return d.Placed() }) {
				continue
			}
			single := func(list []plan.Decision) []plan.Decision {
				return slices.DeleteFunc(slices.Clone(list), gang)
			}
			estimates := cmpopts.IgnoreFields(report.Pending{}, "EstimatedStart") // a review computes more of them
			if diff := cmp.Diff(single(fresh), single(decisions), estimates); diff != "" {
				t.Fatalf("another reason than from scratch: %s", diff)
			}
		}
		placed += len(l.lodgers)
	})
	if compared < 1000 || placed < 100 || partial < 1000 {
		t.Errorf("%d compared, %d placed, %d times only some decided: the lives are too dull", compared, placed, partial)
	}
}

// anyHeld reports whether agents are, or can be, reserved for the head of a queue.
func anyHeld(s *plan.Snapshot) bool {
	for _, g := range s.Groups {
		if g.HoldAfter < 0 {
			continue
		}
		after := g.HoldAfter
		if after == 0 {
			after = plan.DefaultHoldAfter
		}
		for i := range s.Pending {
			if r := &s.Pending[i]; r.Group == g.ID && s.Now.Sub(r.Created) >= after {
				return true
			}
		}
	}
	return false
}

// When the head of a queue has waited long enough, agents are reserved for it, although nothing
// else has changed. The reservation ends when the head leaves the queue.
func TestPlannerHoldsForTheHead(t *testing.T) {
	s := newSite()
	s.agent("a", nil, resource.Slots{"cuda.shares": 100})
	s.ask("head", 9*time.Minute, resource.Slots{"cuda.device": 2})
	var p plan.Planner
	placed := func(what string, now time.Time, c plan.Change, want ...string) {
		t.Helper()
		s.Now = now
		s.Pending = append(s.Pending, c.New...)
		var got []string
		for _, d := range p.Decide(&s.Snapshot, c) {
			if d.Placed() {
				got = append(got, nameOf(d.SessionID))
				s.Pending = slices.DeleteFunc(s.Pending, func(r plan.Request) bool { return r.SessionID == d.SessionID })
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: placed %v, want %v", what, got, want)
		}
	}
	one := func(name string, priority int) plan.Change {
		r := *s.ask(name, 0, resource.Slots{"cuda.shares": 50})
		s.Pending = s.Pending[:len(s.Pending)-1]
		r.Priority = priority
		return plan.Change{New: []plan.Request{r}}
	}
	placed("at first", noon, plan.Change{All: true})
	placed("the head is young", noon, one("first", 0), "first")
	placed("the head is old", noon.Add(2*time.Minute), one("second", 0))
	placed("it comes before the head", noon.Add(2*time.Minute), one("third", 1), "third")
	s.Pending = s.Pending[1:]
	placed("the head has gone", noon.Add(2*time.Minute), plan.Change{Gone: []uuid.UUID{idOf("head")}}, "second")
}

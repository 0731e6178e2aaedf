package plan

import (
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Suggestion is one change with which a waiting request would start now, at its position in
// the queue. Exactly one of Slots, Group, AnyAgent and End is set.
type Suggestion struct {
	Slots    resource.Slots // smaller amounts for every kernel
	Group    uuid.UUID      // another resource group
	AnyAgent bool           // not only the requested agents
	End      uuid.UUID      // after the end of this session
}

// Alternatives are the possible suggestions besides smaller amounts.
type Alternatives struct {
	Groups  []uuid.UUID    // other groups that it can use, preferred ones first
	Running []Running      // sessions that can be named, preferred ones first
	Least   resource.Slots // minimum amounts
}

// Limits of the search: it tries at most maxTries shapes on the cluster in the state at the
// request's turn, and verifies suggestions with at most maxPasses plans.
const (
	maxTries  = 256
	maxPasses = 16
	// suggestions per kind
	maxGroups = 2
)

// Suggest returns changes with which a request would start now. Each was verified with a plan:
// With(s, session, suggestion) places the session.
func Suggest(s *Snapshot, session uuid.UUID, alt Alternatives) []Suggestion {
	f := newFinder(s, session)
	if f == nil {
		return nil
	}
	f.least = alt.Least
	var list []Suggestion
	list = append(list, f.anyAgent()...)
	list = append(list, f.less()...)
	list = append(list, f.elsewhere(alt.Groups)...)
	return append(list, f.afterEnd(alt.Running)...)
}

// UpTo decides on the waiting requests, in the order of the queue, up to the given one. If
// that one does not wait, it decides on all.
func UpTo(s *Snapshot, session uuid.UUID) []Decision {
	return upTo(s, newQueue(s).decide, func(r *Request) bool { return r.SessionID == session })
}

// reach plans up to a request. The decision is nil if the request does not wait.
func reach(s *Snapshot, session uuid.UUID) (*queue, *Decision) {
	q := newQueue(s)
	return q, last(upTo(s, q.decide, func(r *Request) bool { return r.SessionID == session }), session)
}

// last returns the last decision if it is for the session.
func last(all []Decision, session uuid.UUID) *Decision {
	if n := len(all); n > 0 && all[n-1].SessionID == session {
		return &all[n-1]
	}
	return nil
}

// finder searches suggestions for one request.
type finder struct {
	src     *Snapshot
	r       *Request
	q       *queue // in the state at the request's turn
	waiting *report.Pending
	least   resource.Slots // minimum amounts
	tries   int
	passes  int
}

// newFinder returns nil if nothing can be suggested.
func newFinder(s *Snapshot, session uuid.UUID) *finder {
	i := slices.IndexFunc(s.Pending, func(r Request) bool { return r.SessionID == session })
	if i < 0 || len(s.Pending[i].Kernels) == 0 || s.Pending[i].held(s.Now) != "" {
		return nil
	}
	q, d := reach(s, session)
	if d == nil || d.Placed() || q.groups[s.Pending[i].Group] == nil {
		return nil
	}
	return &finder{src: s, r: &s.Pending[i], q: q, waiting: d.Waiting}
}

// fits is a quick check whether a request would fit, and whether limits would allow it, at the
// finder's turn.
func (f *finder) fits(r *Request) bool {
	g := f.q.groups[r.Group]
	if f.tries++; f.tries > maxTries || g == nil || len(f.q.limits.Reached(r)) > 0 {
		return false
	}
	shapes := f.q.shapesOf(g, r)
	if slices.ContainsFunc(shapes, func(s *shape) bool { return s.invalid }) {
		return false
	}
	start, d := len(f.q.c.taken), Decision{}
	defer func() { f.q.c.undo(start) }()
	return f.q.place(r, shapes, &d)
}

// verified verifies a suggestion with a plan.
func (f *finder) verified(x Suggestion) bool {
	return f.planned(With(f.src, f.r.SessionID, x))
}

func (f *finder) planned(s *Snapshot) bool {
	if f.passes++; f.passes > maxPasses {
		return false
	}
	d := last(UpTo(s, f.r.SessionID), f.r.SessionID)
	return d != nil && d.Placed()
}

func (f *finder) anyAgent() []Suggestion {
	if x := (Suggestion{AnyAgent: true}); f.r.Strict && f.verified(x) {
		return []Suggestion{x}
	}
	return nil
}

// elsewhere suggests other groups, if they could ever run the request.
func (f *finder) elsewhere(groups []uuid.UUID) (list []Suggestion) {
	if f.r.Strict { // its agents belong to its group
		return nil
	}
	for _, g := range groups {
		if g == f.r.Group || len(list) == maxGroups {
			continue
		}
		if x := (Suggestion{Group: g}); f.verified(x) {
			list = append(list, x)
		}
	}
	return list
}

// afterEnd suggests the session with the fewest devices among those whose end alone frees
// enough. A quick check precedes each plan.
func (f *finder) afterEnd(running []Running) []Suggestion {
	running = slices.Clone(running)
	slices.SortStableFunc(running, func(a, b Running) int { return f.burden(a) - f.burden(b) })
	for i := range running {
		if x := (Suggestion{End: running[i].SessionID}); f.wouldFit(&running[i]) && f.planned(Without(f.src, &running[i])) {
			return []Suggestion{x}
		}
	}
	return nil
}

// burden returns the number of devices that a session uses.
func (f *finder) burden(x Running) int {
	devices := map[uuid.UUID]bool{}
	for _, h := range x.Holds {
		devices[h.DeviceID] = true
	}
	return len(devices)
}

// wouldFit is a quick check of the devices that a session would free.
func (f *finder) wouldFit(x *Running) bool {
	if f.waiting.Stage == report.StageLimits {
		return true // it does not wait for room
	}
	held := map[uuid.UUID]map[int]int64{}
	for _, h := range x.Holds {
		n, known := f.q.c.number[h.Slot]
		if !known {
			continue
		}
		if held[h.DeviceID] == nil {
			held[h.DeviceID] = map[int]int64{}
		}
		held[h.DeviceID][n] += h.Amount
	}
	give := func(sign int64) {
		for i := range f.q.c.agents {
			a := &f.q.c.agents[i]
			changed := false
			for j := range a.devices {
				for slot, amount := range held[a.devices[j].src.ID] {
					f.q.c.charge(a, &a.devices[j], slot, -sign*amount)
					changed = true
				}
			}
			if changed {
				f.q.c.refresh(a)
			}
		}
	}
	give(1)
	defer give(-1)
	return f.fits(f.r)
}

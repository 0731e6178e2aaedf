package plan

import (
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Suggestion is one change with which a request that waits would start now, in
// its place in the queue. Exactly one of Slots, Group, AnyAgent and End is set.
type Suggestion struct {
	Slots    resource.Slots // less of them, for every kernel
	Group    uuid.UUID      // in another resource group
	AnyAgent bool           // not only on the agents that it asks for
	End      uuid.UUID      // once this session has ended
}

// Alternatives are what may be suggested beside less of what is asked for.
type Alternatives struct {
	Groups  []uuid.UUID    // other groups that it may run in, the preferred first
	Running []Running      // sessions that may be named, the preferred first
	Least   resource.Slots // of which no less is suggested
}

// A search for suggestions is bounded: it tries at most maxTries shapes on the
// cluster as the request finds it, and plans up to the request's place at most
// maxPasses times to verify what it found.
const (
	maxTries  = 256
	maxPasses = 16
	// of one kind that are given
	maxGroups = 2
)

// Suggest finds changes with which a request would start now. Each was verified
// by planning with it: With(s, session, suggestion) places the session.
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

// UpTo decides on what waits, in the order of the queue, and ends with one
// request. When that does not wait, all are decided on.
func UpTo(s *Snapshot, session uuid.UUID) []Decision {
	return upTo(s, newQueue(s).decide, func(r *Request) bool { return r.SessionID == session })
}

// reach plans up to a request, whose decision is nil when it does not wait.
func reach(s *Snapshot, session uuid.UUID) (*queue, *Decision) {
	q := newQueue(s)
	return q, last(upTo(s, q.decide, func(r *Request) bool { return r.SessionID == session }), session)
}

// last is the last decision, where it is on the session.
func last(all []Decision, session uuid.UUID) *Decision {
	if n := len(all); n > 0 && all[n-1].SessionID == session {
		return &all[n-1]
	}
	return nil
}

// finder looks for suggestions for one request.
type finder struct {
	src     *Snapshot
	r       *Request
	q       *queue // as the request finds it
	waiting *report.Pending
	least   resource.Slots // of which no less is suggested
	tries   int
	passes  int
}

// newFinder is nil when nothing can be suggested.
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

// fits is a quick look whether a request would find room, and limits would let
// it, where the request of the finder comes.
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

// verified plans with a suggestion.
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

// elsewhere names other groups, if they could ever serve the request.
func (f *finder) elsewhere(groups []uuid.UUID) (list []Suggestion) {
	if f.r.Strict { // its agents are of its group
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

// afterEnd names the session that has least of those whose end alone makes
// room. Before it plans, it looks whether the request would fit in what becomes
// free.
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

// burden is how many devices a session holds some of.
func (f *finder) burden(x Running) int {
	devices := map[uuid.UUID]bool{}
	for _, h := range x.Holds {
		devices[h.DeviceID] = true
	}
	return len(devices)
}

// wouldFit is a quick look at what a session gives back.
func (f *finder) wouldFit(x *Running) bool {
	if f.waiting.Stage == report.StageLimits {
		return true // room is not what it waits for
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

package plan

import (
	"cmp"
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

// less suggests the largest amount of one slot with which the request starts, with all else
// unchanged, or smaller amounts of several slots if that is necessary.
func (f *finder) less() (list []Suggestion) {
	slots := f.r.Kernels[0].Slots
	for _, k := range f.r.Kernels[1:] {
		if !slices.Equal(k.Slots.Names(), slots.Names()) || k.Slots.String() != slots.String() {
			return nil // the kernel to reduce is the user's choice
		}
	}
	for _, name := range slots.Names() {
		steps := f.amounts(name, slots[name])
		if len(steps) == 0 || !f.fits(f.with(slots, name, steps[len(steps)-1])) {
			continue
		}
		for _, amount := range steps {
			r := f.with(slots, name, amount)
			if x := (Suggestion{Slots: r.Kernels[0].Slots}); f.fits(r) && f.verified(x) {
				list = append(list, x)
				break
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	return f.fewer(slots)
}

// fewer reduces every slot to the amount that the nearest agent could provide.
func (f *finder) fewer(slots resource.Slots) []Suggestion {
	g := f.q.groups[f.r.Group]
	s := f.q.shapesOf(g, f.r)[0]
	best, least := resource.Slots(nil), 0.0
	for _, i := range s.profile.agents {
		a := &f.q.c.agents[i]
		if a.held {
			continue
		}
		offer, lacks := slots.Clone(), 0.0
		for _, n := range s.needs {
			l := lack(n, a.reach(f.q.c, n))
			if l == 0 {
				continue
			}
			lacks += l
			name := f.q.c.slots[n.slot].name
			steps := f.amounts(name, n.amount)
			k := slices.IndexFunc(steps, func(amount int64) bool {
				return amount <= a.free[n.slot] && a.reach(f.q.c, need{slot: n.slot, amount: amount}) >= amount
			})
			if k < 0 {
				offer = nil
				break
			}
			offer[name] = steps[k]
		}
		if offer != nil && lacks > 0 && (best == nil || lacks < least) {
			if r := f.with(offer, "", 0); f.fits(r) {
				best, least = offer, lacks
			}
		}
	}
	if x := (Suggestion{Slots: best}); best != nil && f.verified(x) {
		return []Suggestion{x}
	}
	return nil
}

// with returns the request with another amount of a slot for each kernel.
func (f *finder) with(slots resource.Slots, name string, amount int64) *Request {
	r := *f.r
	slots = slots.Clone()
	if name != "" {
		slots[name] = amount
	}
	x := Suggestion{Slots: slots}
	x.change(&r)
	return &r
}

// maxSteps is the number of smaller amounts that are tried.
const maxSteps = 24

// amounts returns amounts below the requested one, the largest first, in steps that a user
// would choose: about a sixteenth of it, rounded to 1, 2 or 5 times a power of ten, or to a
// power of two of bytes, and whole numbers from four on; and quarters of it.
func (f *finder) amounts(name string, asked int64) (list []int64) {
	quantum := int64(1)
	if n, known := f.q.c.number[name]; known {
		quantum = max(1, f.q.c.slots[n].quantum)
	}
	step := decimalStep(asked)
	if one, err := resource.Parse(name, "1"); err == nil && asked >= 4*one {
		step = max(step, one)
	}
	if resource.KindOf(name) == resource.Bytes {
		step = binaryStep(asked)
	}
	step = max(quantum, step/quantum*quantum)
	for amount := (asked - 1) / step * step; amount > 0 && len(list) < maxSteps; amount -= step {
		list = append(list, amount)
	}
	for quarters := range int64(3) {
		if amount := asked * (quarters + 1) / 4 / quantum * quantum; amount > 0 && step <= asked/4 {
			list = append(list, amount)
		}
	}
	slices.SortFunc(list, func(a, b int64) int { return cmp.Compare(b, a) })
	list = slices.Compact(list)
	list = halved(list, asked, quantum)
	return slices.DeleteFunc(list, func(amount int64) bool { return amount < f.least[name] })
}

// halved appends repeated halves down to the quantum.
func halved(list []int64, asked, quantum int64) []int64 {
	for last := asked; ; {
		if len(list) > 0 {
			last = list[len(list)-1]
		}
		half := last / 2 / quantum * quantum
		if half <= 0 || half == last || len(list) >= 2*maxSteps {
			return list
		}
		list = append(list, half)
	}
}

func decimalStep(asked int64) int64 {
	step := int64(1)
	for _, next := range []int64{2, 5, 10} {
		for unit := int64(1); unit*next <= asked/16; unit *= 10 {
			step = max(step, unit*next)
		}
	}
	return step
}

func binaryStep(asked int64) int64 {
	step := int64(1)
	for step*2 <= asked/16 {
		step *= 2
	}
	return step
}

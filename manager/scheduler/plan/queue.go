package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
)

// queue is one pass over the pending requests. During a pass devices only fill up, so a
// request that did not fit is not tried again.
type queue struct {
	src      *Snapshot
	c        *cluster
	now      time.Time
	limits   Ledger
	groups   map[uuid.UUID]*group
	profiles map[string]*profile
	shapes   map[string]*shape
	failed   map[string]*reasons // by the shapes of a request
	choices  []uint64            // buffer of picks
	turn     time.Duration       // number of placed kernels, as a time
	image    string              // of the request that is being placed

	// Of a pass; see prepare.
	ready    bool
	keeps    map[int]*keep // by agent
	promises map[uuid.UUID]*promise
	victims  map[uuid.UUID]bool // sessions that are to end for others
	vain     map[string]bool    // requests for which preemption does not help
	placed   []live             // with a known end
	// Of running sessions, computed on first use.
	spots   map[uuid.UUID]spot // devices
	live    map[uuid.UUID][]live
	leaving map[int][]taking // by agent
	members map[uuid.UUID]*members
}

// group is the queue of a resource group.
type group struct {
	src     Group
	agents  []int
	classes classes
	mixture *mixture
	waiting int       // number of waiting requests so far
	headed  bool      // one of them waits for room
	moment  time.Time // when the head fits; zero: unknown, or no reservation

	evictable []live // nil: not computed yet
}

// profile is the requirements of a session on agents, and the agents that meet them.
type profile struct {
	group   *group
	number  int
	agents  []int
	hosts   map[uint64]bool // keys of these agents without state
	dropped []report.DroppedAgents
}

// shape is the needs of a kernel within a profile.
type shape struct {
	profile *profile
	needs   []need
	steps   []step
	invalid bool
	number  int
	score   []float64 // by class
}

func newQueue(s *Snapshot) *queue {
	q := &queue{
		src: s, c: newCluster(s), now: s.Now, limits: NewLedger(s.Limits),
		groups: map[uuid.UUID]*group{}, profiles: map[string]*profile{},
		shapes: map[string]*shape{}, failed: map[string]*reasons{},
		keeps: map[int]*keep{}, promises: map[uuid.UUID]*promise{}, victims: map[uuid.UUID]bool{}, vain: map[string]bool{},
	}
	for _, g := range s.Groups {
		q.groups[g.ID] = &group{src: g, classes: classes{number: map[uint64]int32{}}}
	}
	for i := range q.c.agents {
		if g := q.groups[q.c.agents[i].src.Group]; g != nil {
			g.agents = append(g.agents, i)
			q.c.agents[i].classes = &g.classes
			q.c.settle(&q.c.agents[i])
		}
	}
	return q
}

// decide places a request or returns the reason why it waits.
func (q *queue) decide(r *Request) Decision {
	d := Decision{SessionID: r.SessionID}
	g := q.groups[r.Group]
	if g == nil {
		d.Waiting = q.wait(&group{}, report.Pending{Stage: report.StageGroup, Summary: "The resource group of the session is deleted or not active."})
		return d
	}
	if held := r.held(q.now); held != "" {
		d.Waiting = q.wait(g, report.Pending{Stage: report.StageHeld, Summary: held, Until: r.until(q.now)})
		return d
	}
	shapes := q.shapesOf(g, r)
	if len(shapes) == 0 || slices.ContainsFunc(shapes, func(s *shape) bool { return s.invalid }) {
		d.Waiting = q.wait(g, report.Pending{Stage: report.StageRoom, Summary: "The session requests no container, or a negative amount."})
		return d
	}
	if !q.ready {
		q.prepare()
	}
	mark := len(q.c.taken)
	if p := q.promises[r.SessionID]; p != nil {
		if q.redeem(r, p, &d) {
			q.settle(r, mark)
		} else {
			d.Waiting = q.wait(g, making(p.room))
		}
		return d
	}
	if reached := q.limits.Reached(r); len(reached) > 0 {
		d.Waiting = q.wait(g, report.Pending{Stage: report.StageLimits, Summary: limitSummary(reached), Limits: reached})
		return d
	}
	key := q.keyOf(g, r, shapes)
	why := q.failed[key]
	if why == nil {
		if q.place(r, shapes, &d) {
			q.limits.Charge(r)
			q.settle(r, mark)
			return d
		}
		why = q.why(r, shapes)
		q.failed[key] = why
	}
	if room, victims := q.preempt(g, r, shapes); room != nil {
		q.limits.Charge(r)
		d.Victims, d.Waiting = victims, q.wait(g, making(room))
		return d
	}
	d.Waiting = q.wait(g, why.report())
	if g.headed {
		return d
	}
	before := q.heldOf(g)
	if at := q.head(g, r, shapes); at.After(q.now) {
		d.Waiting.EstimatedStart = &at
	}
	d.Waiting.Holds = q.heldOf(g) - before
	return d
}

// wait adds the position in the queue to a report.
func (q *queue) wait(g *group, p report.Pending) *report.Pending {
	g.waiting++
	p.Position = g.waiting
	p.DecidedAt = q.now
	p.Agents = len(g.agents)
	return &p
}

// settle makes the entries of the journal since mark permanent.
func (q *queue) settle(r *Request, mark int) {
	q.settled(r, q.c.taken[mark:])
	q.c.taken = q.c.taken[:mark]
}

// place places every kernel, or none: on one agent if one has room, else on several, choosing
// the best for each or, if that leaves a kernel without place, others.
func (q *queue) place(r *Request, shapes []*shape, d *Decision) bool {
	q.image = r.Image
	if len(shapes) > 1 && q.placeOnOne(r, shapes, d) {
		return true
	}
	start := len(q.c.taken)
	for i, s := range shapes {
		mark := len(q.c.taken)
		if q.find(s, r) < 0 {
			q.c.undo(start)
			d.Assignments = nil
			return q.placeAll(r, shapes, s, d)
		}
		d.Assignments = append(d.Assignments, q.c.assignment(r.Kernels[i].ID, mark))
	}
	return true
}

// head records the first request of a group that has no room, and reserves agents for it after
// it has waited long enough. A request that no agent could ever run blocks nothing.
func (q *queue) head(g *group, r *Request, shapes []*shape) (at time.Time) {
	after := cmp.Or(g.src.HoldAfter, DefaultHoldAfter)
	if g.headed || after < 0 {
		return time.Time{}
	}
	if g.headed = q.now.Sub(r.Created) < after; !g.headed {
		at, g.headed = q.reserve(r, shapes)
		g.moment = at
	}
	return at
}

// shapesOf returns the shapes of a request's kernels.
func (q *queue) shapesOf(g *group, r *Request) []*shape {
	p := q.profileOf(g, r)
	shapes := make([]*shape, len(r.Kernels))
	key := make([]byte, 0, 64)
	for i := range r.Kernels {
		needs, ok := q.c.needsOf(r.Kernels[i].Slots)
		key = binary.AppendUvarint(key[:0], uint64(p.number))
		for _, n := range needs {
			key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(n.slot)), uint64(n.amount))
		}
		if !ok {
			key = append(key, "invalid"...)
		}
		s := q.shapes[string(key)]
		if s == nil {
			s = &shape{profile: p, needs: needs, steps: q.c.stepsOf(needs), invalid: !ok, number: len(q.shapes)}
			q.shapes[string(key)] = s
		}
		shapes[i] = s
	}
	return shapes
}

// keyOf returns a key that is equal for requests that fit under the same conditions.
func (q *queue) keyOf(g *group, r *Request, shapes []*shape) string {
	key := keyOf(shapes)
	if q.before(r, g.moment) {
		key += "\x00before the head"
	}
	return key
}

func keyOf(shapes []*shape) string {
	key := make([]byte, 0, 4*len(shapes))
	for _, s := range shapes {
		key = binary.AppendUvarint(key, uint64(s.number))
	}
	return string(key)
}

// profileOf finds the agents that can run a request at all.
func (q *queue) profileOf(g *group, r *Request) *profile {
	volumes := slices.Compact(slices.Sorted(slices.Values(r.Volumes)))
	key := string(g.src.ID[:]) + r.Architecture + "\x00" + strings.Join(volumes, "\x00")
	if r.Strict {
		key += fmt.Sprint("\x00", r.Agents)
	}
	key += q.circle(r)
	if p := q.profiles[key]; p != nil {
		return p
	}
	p := &profile{group: g, number: len(q.profiles), hosts: map[uint64]bool{}}
	q.profiles[key] = p
	var other, arch, volume, group int
	closed := map[Closed]*report.DroppedAgents{}
	for _, i := range g.agents {
		a := q.c.agents[i].src
		switch {
		case r.excluded(a.ID):
			other++
		case !a.Schedulable:
			a.close(closed)
		case r.Architecture != "" && a.Architecture != r.Architecture:
			arch++
		case !containsAll(a.Volumes, volumes):
			volume++
		case q.apart(r, &q.c.agents[i]):
			group++
			p.hosts[q.c.agents[i].host] = true // it counts again once its session group has ended there
		default:
			p.agents = append(p.agents, i)
			p.hosts[q.c.agents[i].host] = true
		}
	}
	p.drop(checkAsked, other)
	for _, why := range []Closed{ClosedCordoned, ClosedDraining, ClosedLost, ClosedUnfit} {
		if d := closed[why]; d != nil {
			p.dropped = append(p.dropped, *d)
		}
	}
	p.drop(checkArchitecture, arch)
	p.drop(checkVolume, volume)
	p.drop(checkTogether, group)
	return p
}

func (p *profile) drop(check string, n int) {
	if n > 0 {
		p.dropped = append(p.dropped, report.DroppedAgents{Check: check, Count: n})
	}
}

// maxBecause limits the reasons in a report.
const maxBecause = 3

// close counts an agent that takes no new sessions, with the reason.
func (a *Agent) close(all map[Closed]*report.DroppedAgents) {
	how := cmp.Or(a.Closed, ClosedCordoned)
	d := all[how]
	if d == nil {
		d = &report.DroppedAgents{Check: string(how)}
		all[how] = d
	}
	d.Count++
	if a.Because != "" && !slices.Contains(d.Why, a.Because) && len(d.Why) < maxBecause {
		d.Why = append(d.Why, a.Because)
	}
}

func containsAll(have, want []string) bool {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

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

// queue is one pass over the pending requests. During a pass devices only
// fill up, so what did not fit once need not be tried again.
type queue struct {
	src      *Snapshot
	c        *cluster
	now      time.Time
	limits   Ledger
	groups   map[uuid.UUID]*group
	profiles map[string]*profile
	shapes   map[string]*shape
	failed   map[string]*reasons // by all shapes of a request
	choices  []uint64            // scratch of picks
	turn     time.Duration       // counts kernels placed
}

// group is the queue of a resource group.
type group struct {
	src     Group
	agents  []int
	classes classes
	mixture *mixture
	waiting int  // requests that wait so far
	headed  bool // one of them for lack of room
}

// profile is what a session asks of agents as such, and who has it.
type profile struct {
	group   *group
	number  int
	agents  []int
	hosts   map[uint64]bool // what these agents are
	dropped []report.DroppedAgents
}

// shape is a kernel's needs within a profile.
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

// decide places a request or says why it waits.
func (q *queue) decide(r *Request) Decision {
	d := Decision{SessionID: r.SessionID}
	g := q.groups[r.Group]
	if g == nil {
		d.Waiting = q.wait(&group{}, report.Pending{Summary: "Its resource group is gone or not active."})
		return d
	}
	if held := r.held(q.now); held != "" {
		d.Waiting = q.wait(g, report.Pending{Summary: held})
		return d
	}
	shapes := q.shapesOf(g, r)
	if len(shapes) == 0 || slices.ContainsFunc(shapes, func(s *shape) bool { return s.invalid }) {
		d.Waiting = q.wait(g, report.Pending{Summary: "It asks for no kernel, or for less than nothing."})
		return d
	}
	if reached := q.limits.Reached(r); len(reached) > 0 {
		d.Waiting = q.wait(g, report.Pending{Summary: limitSummary(reached), Limits: reached})
		return d
	}
	key := keyOf(shapes)
	if why := q.failed[key]; why != nil {
		d.Waiting = q.wait(g, why.report())
		return d
	}
	mark := len(q.c.taken)
	if q.place(r, shapes, &d) {
		q.limits.Charge(r)
		q.c.taken = q.c.taken[:mark] // for good
		return d
	}
	why := q.why(r, shapes)
	q.failed[key] = why
	d.Waiting = q.wait(g, why.report())
	q.head(g, r, shapes)
	return d
}

// wait gives a report its place in the queue.
func (q *queue) wait(g *group, p report.Pending) *report.Pending {
	g.waiting++
	p.Position = g.waiting
	p.DecidedAt = q.now
	p.Agents = len(g.agents)
	return &p
}

// place finds room for every kernel, or for none.
func (q *queue) place(r *Request, shapes []*shape, d *Decision) bool {
	start := len(q.c.taken)
	for i, s := range shapes {
		mark := len(q.c.taken)
		if q.find(s, r) < 0 {
			q.c.undo(start)
			d.Assignments = nil
			return false
		}
		d.Assignments = append(d.Assignments, q.c.assignment(r.Kernels[i].ID, mark))
	}
	return true
}

// head notes the first request of a group that has no room, and once it has
// waited long enough holds the agents it needs. They only drain from then on,
// so what the nearest of them lacks only becomes less.
func (q *queue) head(g *group, r *Request, shapes []*shape) {
	first := !g.headed
	g.headed = true
	after := cmp.Or(g.src.HoldAfter, DefaultHoldAfter)
	if !first || after < 0 || q.now.Sub(r.Created) < after {
		return
	}
	q.hold(shapes)
}

// hold picks for every kernel the agent that lacks least among those that
// would have room if they were empty.
func (q *queue) hold(shapes []*shape) {
	candidates := slices.Clone(shapes[0].profile.agents)
	lack := make(map[int]float64, len(candidates))
	for _, a := range candidates {
		lack[a] = q.lackOf(&q.c.agents[a], shapes)
	}
	slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(lack[a], lack[b]) })
	empty := newEmptied(q.c, candidates)
	defer empty.restore()
	held := []int{}
	for _, s := range shapes {
		i := slices.IndexFunc(candidates, func(a int) bool { return q.c.fit(a, s.steps) })
		if i < 0 {
			return // not even an empty group has room
		}
		held = append(held, candidates[i])
	}
	for _, a := range held {
		q.c.agents[a].held = true // leaves its class with the refresh of restore
	}
}

// lackOf sums, over distinct kernels, which part of the needs is missing.
func (q *queue) lackOf(a *agent, shapes []*shape) float64 {
	sum := 0.0
	for i, s := range shapes {
		if slices.Contains(shapes[:i], s) {
			continue
		}
		for _, n := range s.needs {
			sum += lack(n, a.reach(q.c, n))
		}
	}
	return sum
}

// emptied is a set of agents as if nothing ran on them.
type emptied struct {
	c      *cluster
	agents []int
	mark   int
	used   [][]int64
}

func newEmptied(c *cluster, agents []int) *emptied {
	e := &emptied{c: c, agents: agents, mark: len(c.taken)}
	for _, a := range agents {
		for i := range c.agents[a].devices {
			d := &c.agents[a].devices[i]
			e.used = append(e.used, d.used)
			c.swap(&c.agents[a], d, make([]int64, len(d.used)))
		}
		c.refresh(&c.agents[a])
	}
	return e
}

func (e *emptied) restore() {
	e.c.rollback(e.mark)
	for _, a := range e.agents {
		agent := &e.c.agents[a]
		for i := range agent.devices {
			e.c.swap(agent, &agent.devices[i], e.used[0])
			e.used = e.used[1:]
		}
		e.c.refresh(agent)
	}
}

// shapesOf finds the shapes of a request's kernels.
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

func keyOf(shapes []*shape) string {
	key := make([]byte, 0, 4*len(shapes))
	for _, s := range shapes {
		key = binary.AppendUvarint(key, uint64(s.number))
	}
	return string(key)
}

// profileOf finds who may run a request at all.
func (q *queue) profileOf(g *group, r *Request) *profile {
	volumes := slices.Compact(slices.Sorted(slices.Values(r.Volumes)))
	key := string(g.src.ID[:]) + r.Architecture + "\x00" + strings.Join(volumes, "\x00")
	if r.Strict {
		key += fmt.Sprint("\x00", r.Agents)
	}
	if p := q.profiles[key]; p != nil {
		return p
	}
	p := &profile{group: g, number: len(q.profiles), hosts: map[uint64]bool{}}
	q.profiles[key] = p
	var other, off, arch, volume int
	for _, i := range g.agents {
		a := q.c.agents[i].src
		switch {
		case r.barred(a.ID):
			other++
		case !a.Schedulable:
			off++
		case r.Architecture != "" && a.Architecture != r.Architecture:
			arch++
		case !containsAll(a.Volumes, volumes):
			volume++
		default:
			p.agents = append(p.agents, i)
			p.hosts[q.c.agents[i].host] = true
		}
	}
	p.drop(checkAsked, other)
	p.drop(checkSchedulable, off)
	p.drop(checkArchitecture, arch)
	p.drop(checkVolume, volume)
	return p
}

func (p *profile) drop(check string, n int) {
	if n > 0 {
		p.dropped = append(p.dropped, report.DroppedAgents{Check: check, Count: n})
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

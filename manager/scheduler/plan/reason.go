package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// The checks of an agent, in their order.
const (
	checkAsked        = "not_asked_for"
	checkCordoned     = string(ClosedCordoned)
	checkDraining     = string(ClosedDraining)
	checkLost         = string(ClosedLost)
	checkUnfit        = string(ClosedUnfit)
	checkArchitecture = "architecture"
	checkVolume       = "volume_missing"
	checkNetwork      = "network" // room for some of the kernels, but no network to kernels on other agents
	checkTogether     = "group"   // excluded by the session group
	checkMissing      = "slot_missing"
	checkCounts       = "slot_counts" // the agent gives a kernel other amounts only
	checkCPU          = "cpu"
	checkMem          = "mem"
	checkCounters     = "counters" // partitions that share hardware with others in use
	checkTopology     = "topology" // devices too far from each other
	checkTotal        = "slot_total"
	checkContiguity   = "slot_contiguity"
	checkReserved     = "reserved" // enough is free, but the agent is reserved for the head of the queue
)

var checkOrder = []string{
	checkAsked, checkCordoned, checkDraining, checkLost, checkUnfit, checkArchitecture, checkVolume, checkTogether, checkMissing,
	checkCounts, checkCPU, checkMem, checkCounters, checkTopology, checkTotal, checkContiguity, checkNetwork, checkReserved,
}

// reasons explains why a request cannot be placed.
type reasons struct {
	summary string
	dropped []report.DroppedAgents
	nearest *report.NearestFit
	most    map[int]int64 // by slot number: the largest free amount on an agent that has too little of it
}

// report returns the reasons as a report that shares no memory with them.
func (w *reasons) report() report.Pending {
	p := report.Pending{Stage: report.StageRoom, Summary: w.summary, Dropped: slices.Clone(w.dropped)}
	if slices.ContainsFunc(w.dropped, func(d report.DroppedAgents) bool { return d.Check == checkReserved }) {
		p.Stage = report.StageOrder
	}
	if w.nearest != nil {
		n := *w.nearest
		p.Nearest = &n
	}
	return p
}

// why examines every agent for the first kernel that does not fit after the kernels
// before it were placed.
func (q *queue) why(r *Request, shapes []*shape) *reasons {
	start := len(q.c.taken)
	defer q.c.undo(start)
	k := 0
	for k < len(shapes)-1 && q.find(shapes[k], r) >= 0 {
		k++
	}
	w := q.examine(shapes[k], len(shapes))
	w.summary = q.summary(w, shapes, k)
	return w
}

// examine counts the agents that each check rules out, and finds the agent that comes
// nearest to what the kernel needs.
func (q *queue) examine(s *shape, kernels int) *reasons {
	type check struct {
		name string
		slot int
	}
	counts := map[check]int{}
	w := &reasons{dropped: slices.Clone(s.profile.dropped), most: map[int]int64{}}
	least := 0.0
	alone := &report.DroppedAgents{Check: checkNetwork}
	for _, i := range s.profile.agents {
		a := &q.c.agents[i]
		if q.c.solitary(kernels, a) && a.mayFit(q.c, s.needs) && q.c.hasRoom(i, s.steps) {
			q.c.isolated(alone, a)
			continue
		}
		name, slot := q.obstacle(i, s)
		counts[check{name, slot}]++
		if name == checkCPU || name == checkMem || name == checkTotal {
			w.most[slot] = max(w.most[slot], a.free[slot])
		}
		if name == checkMissing || name == checkCounts || name == checkReserved {
			continue
		}
		if sum, worst := q.distance(a, s, slot); w.nearest == nil || sum < least {
			least = sum
			w.nearest = &report.NearestFit{
				Agent: a.src.Name, Slot: q.c.slots[worst.slot].name,
				Requested: q.format(worst.slot, worst.amount),
				Free:      q.format(worst.slot, a.reach(q.c, worst)),
			}
		}
	}
	if alone.Count > 0 {
		w.dropped = append(w.dropped, *alone)
	}
	for c, n := range counts {
		d := report.DroppedAgents{Check: c.name, Count: n}
		if c.slot >= 0 {
			d.Slot = q.c.slots[c.slot].name
		}
		w.dropped = append(w.dropped, d)
	}
	slices.SortFunc(w.dropped, func(a, b report.DroppedAgents) int {
		return cmp.Or(cmp.Compare(slices.Index(checkOrder, a.Check), slices.Index(checkOrder, b.Check)), cmp.Compare(a.Slot, b.Slot))
	})
	return w
}

// isolated counts an agent that has room for some of the kernels, but no network that
// connects them to kernels on other agents.
func (c *cluster) isolated(d *report.DroppedAgents, a *agent) {
	why := "no network for so many containers is left"
	if a.src.Alone != "" {
		why = a.src.Name + ": " + a.src.Alone
	}
	d.Count++
	if !slices.Contains(d.Why, why) && len(d.Why) < maxBecause {
		d.Why = append(d.Why, why)
	}
}

// obstacle returns the first check that an agent does not pass, and the slot that the
// check is about, or -1.
func (q *queue) obstacle(i int, s *shape) (check string, slot int) {
	a := &q.c.agents[i]
	for _, n := range s.needs {
		if a.offer[n.slot] == 0 {
			return checkMissing, n.slot
		}
	}
	if slot := q.c.miscounted(i, s.steps); slot >= 0 {
		return checkCounts, slot
	}
	for _, intrinsic := range []string{resource.CPU, resource.Mem} {
		for _, n := range s.needs {
			if q.c.slots[n.slot].name == intrinsic && a.free[n.slot] < n.amount {
				return intrinsic, n.slot
			}
		}
	}
	if slot := q.c.crowded(i, s); slot >= 0 {
		return checkCounters, slot
	}
	if q.c.scattered(i, s) {
		return checkTopology, s.steps[len(s.steps)-1].slot
	}
	for _, n := range s.needs {
		if a.free[n.slot] < n.amount {
			return checkTotal, n.slot
		}
	}
	for _, n := range s.needs {
		if a.reach(q.c, n) < n.amount {
			return checkContiguity, n.slot
		}
	}
	if mark := len(q.c.taken); a.held && q.c.fit(i, s.steps) {
		q.c.undo(mark)
		return checkReserved, -1
	}
	last := s.steps[len(s.steps)-1]
	return checkContiguity, last.slot
}

// distance returns the sum of the fractions of the needs that an agent lacks, and the
// need with the largest fraction. If the agent lacks none of them, it returns the need
// that the obstacle is about.
func (q *queue) distance(a *agent, s *shape, obstacle int) (sum float64, worst need) {
	most := 0.0
	for _, n := range s.needs {
		l := lack(n, a.reach(q.c, n))
		sum += l
		if l > most || most == 0 && n.slot == obstacle {
			most, worst = l, n
		}
	}
	return sum, worst
}

// reach is an upper bound of the amount of a need that an agent can give now: the
// free amount, or, for a part that must be on one device, the free amount of the
// best device.
func (a *agent) reach(c *cluster, n need) int64 {
	if c.slots[n.slot].rule == part && !n.mated && n.amount <= a.most[n.slot] {
		return a.best[n.slot]
	}
	return a.free[n.slot]
}

// lack is the fraction of a need that a free amount does not cover, from 0 to 1.
func lack(n need, free int64) float64 {
	if free >= n.amount {
		return 0
	}
	return float64(n.amount-free) / float64(n.amount)
}

func (q *queue) format(slot int, amount int64) string {
	return resource.Format(q.c.slots[slot].name, amount)
}

// heldOf counts the agents of a group that are reserved for some request.
func (q *queue) heldOf(g *group) (n int) {
	for i := range q.keeps {
		if q.kept(i) != nil && q.c.agents[i].src.Group == g.src.ID {
			n++
		}
	}
	return n
}

// until returns the time that a request waits for, or nil if it waits for sessions or
// for capacity.
func (r *Request) until(now time.Time) *time.Time {
	for _, at := range []time.Time{r.StartsAt, r.RetryAt} {
		if len(r.After) == 0 && at.After(now) {
			return &at
		}
	}
	return nil
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// The checks, in the order in which an agent goes through them.
const (
	checkAsked        = "not_asked_for"
	checkCordoned     = string(ClosedCordoned)
	checkDraining     = string(ClosedDraining)
	checkLost         = string(ClosedLost)
	checkUnfit        = string(ClosedUnfit)
	checkArchitecture = "architecture"
	checkVolume       = "volume_missing"
	checkNetwork      = "network" // room for some of its kernels, which would reach none on other agents
	checkTogether     = "group"   // where its session group lets it not be
	checkMissing      = "slot_missing"
	checkCounts       = "slot_counts" // comes in other amounts only
	checkCPU          = "cpu"
	checkMem          = "mem"
	checkCounters     = "counters" // partitions that share hardware with others in use
	checkTopology     = "topology" // devices too far from each other
	checkTotal        = "slot_total"
	checkContiguity   = "slot_contiguity"
	checkReserved     = "reserved" // room, but held for the head of the queue
)

var checkOrder = []string{
	checkAsked, checkCordoned, checkDraining, checkLost, checkUnfit, checkArchitecture, checkVolume, checkTogether, checkMissing,
	checkCounts, checkCPU, checkMem, checkCounters, checkTopology, checkTotal, checkContiguity, checkNetwork, checkReserved,
}

// reasons say why a request has no room.
type reasons struct {
	summary string
	dropped []report.DroppedAgents
	nearest *report.NearestFit
}

// report makes a copy that shares nothing.
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

// why looks at every agent for the first kernel that finds no room beside the
// kernels before it.
func (q *queue) why(r *Request, shapes []*shape) *reasons {
	start := len(q.c.taken)
	defer q.c.undo(start)
	k := 0
	for k < len(shapes)-1 && q.find(shapes[k], r) >= 0 {
		k++
	}
	w := q.examine(shapes[k], len(shapes))
	w.summary = summary(len(shapes[k].profile.group.agents), w.dropped)
	if len(shapes) > 1 {
		w.summary = fmt.Sprintf("Kernel %d of %d: %s", k+1, len(shapes), w.summary)
	}
	return w
}

// examine counts the agents that each check drops.
func (q *queue) examine(s *shape, kernels int) *reasons {
	type check struct {
		name string
		slot int
	}
	counts := map[check]int{}
	w := &reasons{dropped: slices.Clone(s.profile.dropped)}
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

// isolated counts an agent among those that have room for some kernels alone.
func (c *cluster) isolated(d *report.DroppedAgents, a *agent) {
	why := "no network for so many kernels is left"
	if a.src.Alone != "" {
		why = a.src.Name + ": " + a.src.Alone
	}
	d.Count++
	if !slices.Contains(d.Why, why) && len(d.Why) < maxBecause {
		d.Why = append(d.Why, why)
	}
}

// obstacle is the first check that an agent does not pass.
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

// distance is how much of the needs an agent lacks, and the need it lacks
// most of; when it lacks none by itself, that of the obstacle.
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

// reach bounds how much of a need an agent could give now: what is free, or for
// a part that must be on one device, what is free on the best one.
func (a *agent) reach(c *cluster, n need) int64 {
	if c.slots[n.slot].rule == part && !n.mated && n.amount <= a.most[n.slot] {
		return a.best[n.slot]
	}
	return a.free[n.slot]
}

func lack(n need, free int64) float64 {
	if free >= n.amount {
		return 0
	}
	return float64(n.amount-free) / float64(n.amount)
}

func (q *queue) format(slot int, amount int64) string {
	return resource.Format(q.c.slots[slot].name, amount)
}

// heldOf counts the agents of a group that are held for some request.
func (q *queue) heldOf(g *group) (n int) {
	for i := range q.keeps {
		if q.kept(i) != nil && q.c.agents[i].src.Group == g.src.ID {
			n++
		}
	}
	return n
}

// until is the time that a request waits for, where it is a time.
func (r *Request) until(now time.Time) *time.Time {
	for _, at := range []time.Time{r.StartsAt, r.RetryAt} {
		if len(r.After) == 0 && at.After(now) {
			return &at
		}
	}
	return nil
}

// summary is one sentence for people.
func summary(agents int, dropped []report.DroppedAgents) string {
	if agents == 0 {
		return "The resource group has no agent."
	}
	var parts []string
	for _, d := range dropped {
		parts = append(parts, fmt.Sprintf("%d %s", d.Count, saying(d)))
	}
	return fmt.Sprintf("None of %d agents has room: %s.", agents, strings.Join(parts, ", "))
}

func saying(d report.DroppedAgents) string {
	switch d.Check {
	case checkAsked:
		return "not asked for"
	case checkUnfit:
		return "closed by a condition of its machine (" + strings.Join(d.Why, "; ") + ")"
	case checkCordoned, checkDraining, checkLost:
		if len(d.Why) > 0 {
			return d.Check + " (" + strings.Join(d.Why, "; ") + ")"
		}
		return d.Check
	case checkArchitecture:
		return "of another architecture"
	case checkVolume:
		return "without a volume it mounts"
	case checkNetwork:
		return "with room for some of its kernels, which would have no network with the others (" + strings.Join(d.Why, "; ") + ")"
	case checkTogether:
		return "where its session group does not let it be"
	case checkMissing:
		return "without " + d.Slot
	case checkCounts:
		return "that give " + d.Slot + " in other amounts only"
	case checkCounters:
		return "with " + d.Slot + " only on hardware in use by others"
	case checkTopology:
		return "with " + d.Slot + " only far from each other"
	case checkContiguity:
		return "with " + d.Slot + " only in pieces"
	case checkReserved:
		return "held for an earlier session"
	}
	return "short of " + d.Slot
}

func limitSummary(reached []report.LimitReached) string {
	s := reached[0].String()
	s = strings.ToUpper(s[:1]) + s[1:]
	if more := len(reached) - 1; more > 0 {
		s += fmt.Sprintf(" (and %d more limits)", more)
	}
	return s + "."
}

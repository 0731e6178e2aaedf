package plan

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Strategy is how a resource group chooses among the agents that have room. Under every
// strategy, a request avoids agents with accelerators that it does not request while other
// agents have room.
type Strategy string

// The strategies.
const (
	StrategyPack         Strategy = "pack"         // keeps free devices as useful as possible; the default
	StrategyConcentrated Strategy = "concentrated" // the fullest agent
	StrategyDispersed    Strategy = "dispersed"    // the emptiest agent
	StrategyRoundRobin   Strategy = "roundrobin"   // the agent on which a kernel was placed longest ago
)

// Strategies lists them.
var Strategies = []Strategy{StrategyPack, StrategyConcentrated, StrategyDispersed, StrategyRoundRobin}

// apart exceeds every score: the penalty for an accelerator family that would be idle.
const apart = 1e6

var (
	unknown   = math.NaN()
	unfit     = math.Inf(1)
	farFuture = time.Unix(1<<40, 0)
)

// find takes a kernel's devices on the best agent, preferring agents of a better rank, and
// returns the agent.
func (q *queue) find(s *shape, r *Request) int {
	for _, place := range q.orders(r) {
		if a := q.choose(s, func(a *agent) bool {
			return q.order(r, a) == place && !q.excluded(r, a) && !q.c.solitary(len(r.Kernels), a)
		}); a >= 0 {
			return a
		}
	}
	return q.beside(s, r)
}

// choose takes the devices on an agent of the class with the lowest score. Ties are broken by
// the state, never by a name.
func (q *queue) choose(s *shape, may func(*agent) bool) int {
	l := s.classes()
	best, least, turn := -1, unfit, farFuture
	for _, n := range l.live {
		v := q.scored(s, n)
		if v == unfit || v > least {
			continue
		}
		if s.profile.group.src.Strategy == StrategyRoundRobin {
			if a, last := q.longestAgo(&l.all[n], may); a >= 0 && (v < least || last.Before(turn)) {
				best, least, turn = a, v, last
			}
			continue
		}
		if v == least && best >= 0 && l.all[n].key >= q.c.agents[best].key {
			continue
		}
		if a := q.member(&l.all[n], may); a >= 0 {
			best, least = a, v
		}
	}
	if best >= 0 && s.profile.group.src.Strategy != StrategyRoundRobin {
		best = q.nearest(s, best, may)
	}
	if best < 0 || !q.take(s, best) {
		return -1
	}
	return best
}

// classes returns the classes of the shape's group, with space for their scores.
func (s *shape) classes() *classes {
	l := &s.profile.group.classes
	for len(s.score) < len(l.all) {
		s.score = append(s.score, unknown)
	}
	return l
}

// scored returns the score of a class for a kernel. It is small enough to be inlined.
func (q *queue) scored(s *shape, n int32) float64 {
	if v := s.score[n]; v == v {
		return v
	}
	return q.score(s, n)
}

func (q *queue) score(s *shape, n int32) float64 {
	s.score[n] = q.rate(s, int(s.profile.group.classes.all[n].members[0]))
	return s.score[n]
}

// maxNearest is the number of equal agents whose topology is compared.
const maxNearest = 16

// nearest returns the agent whose devices for a kernel are nearest to each other, among the
// first ones of a class.
func (q *queue) nearest(s *shape, first int, may func(*agent) bool) int {
	if a := &q.c.agents[first]; a.flat || a.limit > 0 { // all agents of the class have the same topology
		return first
	}
	best, least := first, q.spread(s, first)
	members := q.c.agents[first].classes.all[q.c.agents[first].class].members
	for _, a := range members[:min(len(members), maxNearest)] {
		if least == 0 {
			break
		}
		if i := int(a); i != first && !q.c.agents[i].flat && may(&q.c.agents[i]) {
			if far := q.spread(s, i); far < least {
				best, least = i, far
			}
		}
	}
	return best
}

// spread returns how much farther from each other than necessary the devices are that a kernel
// would get on an agent.
func (q *queue) spread(s *shape, i int) (far int64) {
	mark := len(q.c.taken)
	_, pick := q.best(s, i)
	if q.c.takeSteps(i, s.steps, pick) {
		far = q.c.arrange(i, s.steps, mark)
	}
	q.c.rollback(mark)
	return far
}

// maxLook is the number of equal agents that are checked for an image.
const maxLook = 64

// member returns the first agent of a class that a kernel can use, or one of the next ones
// that has its image or lacks less of it.
func (q *queue) member(k *class, may func(*agent) bool) int {
	best, least, looked := -1, int64(math.MaxInt64), 0
	for _, n := range k.members {
		a := &q.c.agents[n]
		if looked == maxLook {
			break
		}
		if !may(a) {
			continue
		}
		if q.image == "" || a.src.Images[q.image] {
			return int(n)
		}
		if lacks := a.lacks(q.image); best < 0 || lacks < least {
			best, least = int(n), lacks
		}
		looked++
	}
	return best
}

// lacks returns the bytes of an image that an agent must fetch, in steps of lackStep. An agent of
// which that is not known comes last.
func (a *agent) lacks(image string) int64 {
	if a.src.Layers != nil {
		if bytes, known := a.src.Layers.Lacks(a.src.Name, image); known {
			return bytes / lackStep
		}
	}
	return math.MaxInt64
}

// lackStep is the difference between two agents that counts: agents fetch less in a moment.
const lackStep = 8 << 20

// longestAgo returns the agent of a class on which a kernel was placed longest ago.
func (q *queue) longestAgo(k *class, may func(*agent) bool) (pick int, last time.Time) {
	pick, last = -1, farFuture
	for _, n := range k.members {
		a := &q.c.agents[n]
		if !may(a) {
			continue
		}
		if a.last.Before(last) || a.last.Equal(last) && n < int32(pick) {
			pick, last = int(n), a.last
		}
	}
	return pick, last
}

// rate scores an agent for a kernel: lower is better, unfit means no room.
func (q *queue) rate(s *shape, i int) float64 {
	a := &q.c.agents[i]
	if !s.profile.hosts[a.host] || !a.mayFit(q.c, s.needs) {
		return unfit
	}
	score, _ := q.best(s, i)
	return score + apart*float64(q.idleFamilies(a, s))
}

// best tries the ways to place the kernel on an agent. pick is the state of the device for its
// first part, or 0 for the usual rule.
func (q *queue) best(s *shape, i int) (score float64, pick uint64) {
	a := &q.c.agents[i]
	g := s.profile.group
	mark := len(q.c.taken)
	if g.src.Strategy != StrategyPack && g.src.Strategy != "" {
		ok := q.c.takeSteps(i, s.steps, 0)
		q.c.rollback(mark)
		if !ok {
			return unfit, 0
		}
		return g.src.Strategy.score(a, s), 0
	}
	m := q.mixtureOf(g)
	before := m.worth(q.c, a)
	score = unfit
	for _, p := range q.picks(s, a) {
		if q.c.takeSteps(i, s.steps, p) {
			after := m.worth(q.c, a)
			if v := before.worth - after.worth + tieLeft*after.left; v < score || v == score && p < pick {
				score, pick = v, p
			}
		}
		q.c.rollback(mark)
	}
	return score, pick
}

// score is the score by the usage of an agent, from 0 to 1 over the requested slots.
func (st Strategy) score(a *agent, s *shape) float64 {
	if len(s.needs) == 0 {
		return 0
	}
	free := 0.0
	for _, n := range s.needs {
		free += float64(a.free[n.slot]) / float64(a.offer[n.slot])
	}
	switch st {
	case StrategyConcentrated:
		return free / float64(len(s.needs))
	case StrategyDispersed:
		return -free / float64(len(s.needs))
	}
	return 0
}

// picks returns the states of the devices that can provide the kernel's first part.
func (q *queue) picks(s *shape, a *agent) []uint64 {
	q.choices = q.choices[:0]
	for i := range s.steps {
		st := &s.steps[i]
		if q.c.slots[st.slot].rule != part {
			continue
		}
		for j := range a.devices {
			d := &a.devices[j]
			if st.amount <= a.most[st.slot] && q.c.available(d, st.slot) >= st.amount && !slices.Contains(q.choices, d.key) {
				q.choices = append(q.choices, d.key)
			}
		}
		break
	}
	if len(q.choices) == 0 {
		q.choices = append(q.choices, 0)
	}
	return q.choices
}

// take places the kernel on an agent that has room.
func (q *queue) take(s *shape, i int) bool {
	_, pick := q.best(s, i)
	if !q.c.fitFrom(i, s.steps, pick) {
		return false
	}
	q.turn++
	q.c.agents[i].last = q.now.Add(q.turn)
	return true
}

// idleFamilies counts the accelerator families of an agent that the kernel does not request.
func (q *queue) idleFamilies(a *agent, s *shape) int {
	n := 0
	for _, f := range a.families {
		if !slices.ContainsFunc(s.needs, func(n need) bool { return q.c.slots[n.slot].family == f }) {
			n++
		}
	}
	return n
}

// familyOf returns the part of a slot's name before the dot: the accelerator family, or "" for
// cpu and mem.
func familyOf(slot string) string {
	family, _, onDevice := strings.Cut(slot, ".")
	if !onDevice {
		return ""
	}
	return family
}

package plan

import (
	"cmp"
	"container/heap"
	"math"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// tree contains the holders of a group with their allocations and pending requests. A decision
// costs a walk down and up, with one heap per level.
type tree struct {
	levels   []string
	past     bool    // past usage counts too
	ahead    float64 // factor of the dominant share in the usage
	capacity resource.Slots
	shares   map[shareKey]Share
	root     *holder
}

type shareKey struct {
	scope      string
	id, within uuid.UUID
}

// holder is a domain, a project or a user of a group; the root is none of these.
type holder struct {
	scope    string
	id       uuid.UUID
	parent   *holder
	children map[uuid.UUID]*holder
	weight   float64
	past     float64 // past usage
	held     resource.Slots
	share    float64         // dominant share of the allocations
	usage    float64         // past plus current
	standing report.Standing // without scope: outdated
	waiting  holders         // children with requests, as a heap
	requests []*Request      // of a leaf, oldest first
	first    *Request        // its next request
}

func newTree(s *Snapshot, g *Group) *tree {
	t := &tree{
		levels: g.levels(), ahead: 1, capacity: Capacity(s, g.ID),
		shares: map[shareKey]Share{}, root: &holder{children: map[uuid.UUID]*holder{}},
	}
	if g.Order == OrderFairShare {
		t.past = true
		t.ahead = cmp.Or(g.Sharing.Ahead, DefaultAhead).Seconds() / g.Sharing.window()
	}
	for i := range s.Shares {
		if sh := s.Shares[i]; sh.Group == g.ID {
			key := shareKey{sh.Scope, sh.ID, sh.Within}
			sh.Weight = max(sh.Weight, t.shares[key].Weight)
			sh.Usage = max(sh.Usage, t.shares[key].Usage)
			t.shares[key] = sh
		}
	}
	for i := range s.Holdings {
		if h := &s.Holdings[i]; h.Group == g.ID {
			t.charge(t.leaf(h.Domain, h.Project, h.Owner), h.Slots)
		}
	}
	return t
}

func (g *Group) levels() []string {
	switch {
	case len(g.Sharing.Levels) > 0:
		return g.Sharing.Levels
	case g.Order == OrderDRF:
		return []string{ScopeUser}
	}
	return []string{ScopeDomain, ScopeProject, ScopeUser}
}

// Capacity returns the capacity of the usable devices of a group's schedulable agents.
func Capacity(s *Snapshot, group uuid.UUID) resource.Slots {
	sum := resource.Slots{}
	for i := range s.Agents {
		a := &s.Agents[i]
		if a.Group != group || !a.Schedulable {
			continue
		}
		for j := range a.Devices {
			if d := &a.Devices[j]; d.Allocatable && d.Healthy {
				sum.Add(d.Capacity)
			}
		}
	}
	return sum
}

// leaf returns the innermost holder, and creates it and its parents if needed.
func (t *tree) leaf(domain, project, owner uuid.UUID) *holder {
	n := t.root
	for _, scope := range t.levels {
		id := idIn(scope, domain, project, owner)
		child := n.children[id]
		if child == nil {
			child = t.newHolder(scope, id, n)
			n.children[id] = child
		}
		n = child
	}
	return n
}

// idIn returns the holder of a scope.
func idIn(scope string, domain, project, owner uuid.UUID) uuid.UUID {
	switch scope {
	case ScopeDomain:
		return domain
	case ScopeProject:
		return project
	}
	return owner
}

func (t *tree) newHolder(scope string, id uuid.UUID, parent *holder) *holder {
	here, ok := t.shares[shareKey{scope, id, parent.id}]
	anywhere := t.shares[shareKey{scope, id, uuid.Nil}]
	if !ok {
		here = anywhere
	}
	n := &holder{
		scope: scope, id: id, parent: parent,
		weight:   cmp.Or(here.Weight, anywhere.Weight, 1),
		children: map[uuid.UUID]*holder{}, held: resource.Slots{},
	}
	if t.past {
		n.past = here.Usage
	}
	n.usage = n.past
	return n
}

// charge adds slots to a leaf and all holders above it. The caller restores the heaps. Slots
// without capacity do not count.
func (t *tree) charge(leaf *holder, slots resource.Slots) {
	for n := leaf; n.parent != nil; n = n.parent {
		for name, amount := range slots {
			n.held[name] += amount
			if has := t.capacity[name]; has > 0 {
				n.share = max(n.share, float64(n.held[name])/float64(has))
			}
		}
		n.usage = n.past + t.ahead*n.share
		n.standing.Scope = ""
	}
}

// fill adds requests of one priority, oldest first, to an empty tree.
func (t *tree) fill(requests []*Request) {
	for _, r := range requests {
		n := t.leaf(r.Domain, r.Project, r.Owner)
		n.requests = append(n.requests, r)
		for ; n.first == nil && n != t.root; n = n.parent {
			n.first = r // until arranged
			n.parent.waiting = append(n.parent.waiting, n)
		}
	}
	t.root.arrange()
}

// arrange makes heaps, from the leaves up.
func (n *holder) arrange() {
	if len(n.requests) > 0 {
		n.first = n.requests[0]
		return
	}
	for _, child := range n.waiting {
		child.arrange()
	}
	heap.Init(&n.waiting)
	n.first = n.waiting[0].first
}

// pass removes the first request, and charges it if it was placed.
func (t *tree) pass(placed bool) {
	n := t.root
	for len(n.waiting) > 0 {
		n = n.waiting[0]
	}
	if placed {
		for i := range n.first.Kernels {
			t.charge(n, n.first.Kernels[i].Slots)
		}
	}
	n.requests = n.requests[1:]
	n.first = nil
	if len(n.requests) > 0 {
		n.first = n.requests[0]
	}
	for n = n.parent; n != nil; n = n.parent {
		if n.waiting[0].first == nil {
			heap.Pop(&n.waiting)
		} else {
			heap.Fix(&n.waiting, 0)
		}
		n.first = nil
		if len(n.waiting) > 0 {
			n.first = n.waiting[0].first
		}
	}
}

// standings returns the standing of the holders of the first request, outermost first.
func (t *tree) standings() []report.Standing {
	list := make([]report.Standing, 0, len(t.levels))
	for n := t.root; len(n.waiting) > 0; {
		n = n.waiting[0]
		if n.standing.Scope == "" {
			n.standing = n.stands()
		}
		list = append(list, n.standing)
	}
	return list
}

// stands returns the standing of the holder, rounded so that a report does not change every second.
func (n *holder) stands() report.Standing {
	return report.Standing{
		Scope: n.scope, Weight: n.weight, Usage: rounded(n.usage),
		Factor: rounded(math.Exp2(-n.usage / n.weight)),
	}
}

// rounded rounds to three digits.
func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-2)
	return math.Round(x/unit) * unit
}

// holders is a heap: the highest factor first, then the oldest request.
type holders []*holder

func (h holders) Len() int { return len(h) }
func (h holders) Less(i, j int) bool {
	a, b := h[i], h[j]
	// This is the order of the factors, without underflow to 0.
	return cmp.Or(cmp.Compare(a.usage/a.weight, b.usage/b.weight), before(a.first, b.first)) < 0
}
func (h holders) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *holders) Push(x any)   { *h = append(*h, x.(*holder)) }
func (h *holders) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

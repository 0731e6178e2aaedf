package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// Holder is a domain, project or user with current, past or pending use of a group, as the
// order of the group counts it.
type Holder struct {
	Scope                  string
	Domain, Project, Owner uuid.UUID // including the levels above
	Weight                 float64
	Due                    float64 // fraction of its weight among its siblings
	Usage                  float64
	Used                   float64 // fraction of its usage among its siblings
	Factor                 float64
	Held                   resource.Slots
	Waiting                int // requests
}

// Holders returns the holders of a group under OrderDRF, or else OrderFairShare: each before
// those below it, and ordered by factor among siblings.
func Holders(s *Snapshot, group Group) []Holder {
	if group.Order != OrderDRF {
		group.Order = OrderFairShare
	}
	t := newTree(s, &group)
	t.remember()
	waiting := map[*holder]int{}
	for i := range s.Pending {
		if r := &s.Pending[i]; r.Group == group.ID {
			for n := t.leaf(r.Domain, r.Project, r.Owner); n != t.root; n = n.parent {
				waiting[n]++
			}
		}
	}
	return t.root.list(nil, Holder{}, waiting)
}

// remember adds the holders that have only past usage.
func (t *tree) remember() {
	parents := map[uuid.UUID]*holder{uuid.Nil: t.root}
	for _, scope := range t.levels {
		below := map[uuid.UUID]*holder{}
		for key, share := range t.shares {
			parent := parents[key.within]
			if key.scope == scope && share.Usage > 0 && parent != nil && parent.children[key.id] == nil {
				parent.children[key.id] = t.newHolder(scope, key.id, parent)
			}
		}
		for _, parent := range parents {
			for id, n := range parent.children {
				below[id] = n
			}
		}
		parents = below
	}
}

// list appends the holders below a holder.
func (n *holder) list(to []Holder, above Holder, waiting map[*holder]int) []Holder {
	children := make([]*holder, 0, len(n.children))
	var weights, usages float64
	for _, child := range n.children {
		children = append(children, child)
		weights += child.weight
		usages += child.usage
	}
	slices.SortFunc(children, func(a, b *holder) int {
		return cmp.Or(cmp.Compare(a.usage/a.weight, b.usage/b.weight), slices.Compare(a.id[:], b.id[:]))
	})
	for _, child := range children {
		h := Holder{
			Scope: child.scope, Domain: above.Domain, Project: above.Project,
			Weight: child.weight, Due: child.weight / weights, Usage: child.usage, Factor: math.Exp2(-child.usage / child.weight),
			Held: child.held, Waiting: waiting[child],
		}
		if usages > 0 {
			h.Used = child.usage / usages
		}
		switch child.scope {
		case ScopeDomain:
			h.Domain = child.id
		case ScopeProject:
			h.Project = child.id
		default:
			h.Owner = child.id
		}
		to = child.list(append(to, h), h, waiting)
	}
	return to
}

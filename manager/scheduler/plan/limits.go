package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Ledger adds the decisions of a pass to the usage of limits.
type Ledger map[limitKey][]*account

// limitKey identifies the owner of the counted sessions; for a keypair, its user.
type limitKey struct {
	scope string
	id    uuid.UUID
}

type account struct {
	*Limit
	used     resource.Slots
	sessions int
}

// NewLedger returns a Ledger with the current usage.
func NewLedger(list []Limit) Ledger {
	l := Ledger{}
	for i := range list {
		key := limitKey{list[i].Scope, list[i].ID}
		if key.scope == ScopeKeypair {
			key.id = list[i].Owner
		}
		acc := &account{Limit: &list[i], used: list[i].Used.Clone(), sessions: list[i].Sessions}
		if acc.used == nil {
			acc.used = resource.Slots{}
		}
		l[key] = append(l[key], acc)
	}
	return l
}

// of returns the accounts of a session, innermost first.
func (l Ledger) of(r *Request) []*account {
	var list []*account
	for _, key := range []limitKey{{ScopeKeypair, r.Owner}, {ScopeUser, r.Owner}, {ScopeProject, r.Project}, {ScopeDomain, r.Domain}} {
		for _, acc := range l[key] {
			if (acc.Group == uuid.Nil || acc.Group == r.Group) && (acc.Within == uuid.Nil || acc.Within == r.Project) {
				list = append(list, acc)
			}
		}
	}
	return list
}

// Reached returns every limit that the session would exceed.
func (l Ledger) Reached(r *Request) []report.LimitReached {
	var list []report.LimitReached
	total := totalOf(r)
	for _, acc := range l.of(r) {
		if acc.Scope == ScopeKeypair && acc.ID != r.Keypair {
			continue
		}
		if acc.MaxSessions != nil && acc.sessions >= *acc.MaxSessions {
			list = append(list, acc.reached("sessions", fmt.Sprint(acc.sessions), "1", fmt.Sprint(*acc.MaxSessions)))
		}
		for _, name := range total.Names() {
			// A request for nothing passes even if a limit was lowered below the usage.
			most, limited := acc.Total[name]
			if asked := total[name]; (limited || acc.UnlistedZero) && asked > 0 && asked > most-acc.used[name] {
				list = append(list, acc.reached(name, resource.Format(name, acc.used[name]), resource.Format(name, asked), resource.Format(name, most)))
			}
		}
	}
	return list
}

func (a *account) reached(what, used, asked, most string) report.LimitReached {
	return report.LimitReached{
		Scope: a.Scope, Holder: a.Holder, ResourceGroup: a.GroupName, WithinProject: a.ProjectName,
		Policy: a.Policy, What: what, Used: used, Requested: asked, Limit: most,
	}
}

// Charge adds a session that was placed.
func (l Ledger) Charge(r *Request) {
	total := totalOf(r)
	for _, acc := range l.of(r) {
		acc.used.Add(total)
		acc.sessions++
	}
}

func totalOf(r *Request) resource.Slots {
	total := resource.Slots{}
	for i := range r.Kernels {
		total.Add(r.Kernels[i].Slots)
	}
	return total
}

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

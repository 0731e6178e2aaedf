package plan

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Order says who comes first among requests of one resource group and one
// priority; a higher priority always comes first.
//
// Under DRF and fair share the requests of a group are the leaves of a tree of
// holders (see Sharing). Each decision walks down from the root to the child
// with the highest factor
//
//	factor = 2^(-usage/weight)
//
// and there takes the oldest request. Children of equal factor go by the age of
// the request they would send. What is placed counts at once for all holders
// above it, so the next walk may end elsewhere; what has to wait counts for
// no one.
//
// DRF is dominant resource fairness by progressive filling (Ghodsi et al.,
// NSDI 2011, algorithm 1, with the weights of its section 4.3): the usage of a
// holder is its dominant share, which is max over slots of held/capacity, the
// capacity being that of the group's usable devices. Every slot counts by
// itself, also where several are of one device. As requests are not divisible,
// the properties of the paper hold up to single requests. With weights w that
// sum to 1 among holders who start with nothing, and d the largest dominant
// share of a single request of a holder, on a cluster that is one pool:
//
//   - Share guarantee: a holder of whom a request has no room has a dominant
//     share above w*(1-sum of all d). In a tree this holds again below each
//     holder, with the share guaranteed to it in the place of 1.
//   - Envy: when the requests of each holder are alike, and i has a request
//     waiting for room, i could run less than n_i + (w_i/w_j)*(1 + d_j/d_i)
//     requests with w_i/w_j times what j has, n_i being those it runs.
//   - Pareto: nothing that waits has room, so that, when the requests of each
//     holder are alike, no one can get more unless another gets less.
//
// Fair share looks back: the usage of a holder is what it took lately (see
// Decay), plus what it holds now as if that continued for Sharing.Ahead. The
// formula of the factor is Slurm's classic one (priority/multifactor).
type Order string

// The orders of a queue. The empty one is OrderFIFO.
const (
	OrderFIFO      Order = "fifo"       // the oldest first
	OrderLIFO      Order = "lifo"       // the newest first
	OrderDRF       Order = "drf"        // the smallest dominant share first
	OrderFairShare Order = "fair_share" // the least used lately first
)

// Sharing configures OrderDRF and OrderFairShare; zero fields mean defaults.
type Sharing struct {
	// Levels are the scopes of the tree of holders from the outermost in, out of
	// ScopeDomain, ScopeProject and ScopeUser. The default is users alone for DRF,
	// and all three for fair share: then projects share within their domain, and
	// users within their project.
	Levels []string
	// HalfLife is the age at which usage counts half.
	HalfLife time.Duration
	// Lookback is the age from which usage no longer counts.
	Lookback time.Duration
	// Ahead is how long current allocations are assumed to continue.
	Ahead time.Duration
}

// Defaults of Sharing.
const (
	DefaultHalfLife = 7 * 24 * time.Hour
	DefaultLookback = 28 * 24 * time.Hour
	DefaultAhead    = time.Hour
)

// Holding is the current allocation of a user in a project in a group.
type Holding struct {
	Group, Domain, Project, Owner uuid.UUID
	Slots                         resource.Slots
}

// Share is the weight and the past usage of one holder in a group. The default weight is 1,
// the default usage 0; of several shares of a holder, the largest values count.
type Share struct {
	Group  uuid.UUID
	Scope  string // ScopeDomain, ScopeProject or ScopeUser
	ID     uuid.UUID
	Within uuid.UUID // the parent holder, if the share applies only there
	Weight float64   // 0 means the weight without Within, or 1
	Usage  float64   // computed by Decay; only for OrderFairShare
}

// inOrder calls decide for every pending request in order.
func inOrder(s *Snapshot, decide func(*Request) Decision) []Decision {
	return upTo(s, decide, func(*Request) bool { return false })
}

// upTo is inOrder that ends after the given request.
func upTo(s *Snapshot, decide func(*Request) Decision, last func(*Request) bool) []Decision {
	lines := linesOf(s)
	heap.Init(&lines)
	decisions := make([]Decision, 0, len(s.Pending))
	for len(lines) > 0 {
		l := lines[0]
		r := l.first()
		d := decide(r)
		if !d.Placed() {
			d.Waiting.Order = l.ordering()
		}
		decisions = append(decisions, d)
		if last(r) {
			break
		}
		if l.pass(d.Placed()); l.first() == nil {
			heap.Pop(&lines)
		} else {
			heap.Fix(&lines, 0)
		}
	}
	return decisions
}

// line is the queue of one resource group.
type line struct {
	order    Order
	requests []*Request // undecided, sorted
	tree     *tree      // nil for fifo and lifo; contains the requests of one priority
}

// linesOf sorts the pending requests into lines.
func linesOf(s *Snapshot) lines {
	byGroup := map[uuid.UUID]*line{}
	for i := range s.Groups {
		byGroup[s.Groups[i].ID] = &line{order: cmp.Or(s.Groups[i].Order, OrderFIFO)}
	}
	for i := range s.Pending {
		r := &s.Pending[i]
		l := byGroup[r.Group]
		if l == nil { // a group that no longer exists
			l = &line{order: OrderFIFO}
			byGroup[r.Group] = l
		}
		l.requests = append(l.requests, r)
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if l := byGroup[g.ID]; len(l.requests) > 0 && (l.order == OrderDRF || l.order == OrderFairShare) {
			l.tree = newTree(s, g)
		}
	}
	list := make(lines, 0, len(byGroup))
	for _, l := range byGroup {
		if len(l.requests) > 0 {
			l.sort()
			list = append(list, l)
		}
	}
	return list
}

func (l *line) sort() {
	slices.SortFunc(l.requests, func(a, b *Request) int {
		if l.order == OrderLIFO && a.Priority == b.Priority {
			a, b = b, a
		}
		return before(a, b)
	})
	l.fill()
}

// fill adds the requests of the next priority to the tree.
func (l *line) fill() {
	if l.tree == nil || len(l.requests) == 0 {
		return
	}
	n := 1
	for n < len(l.requests) && l.requests[n].Priority == l.requests[0].Priority {
		n++
	}
	l.tree.fill(l.requests[:n])
	l.requests = l.requests[n:]
}

// first returns the next request, or nil.
func (l *line) first() *Request {
	if l.tree != nil {
		return l.tree.root.first
	}
	if len(l.requests) == 0 {
		return nil
	}
	return l.requests[0]
}

// pass removes the first request from the line.
func (l *line) pass(placed bool) {
	if l.tree == nil {
		l.requests = l.requests[1:]
		return
	}
	if l.tree.pass(placed); l.tree.root.first == nil {
		l.fill()
	}
}

// ordering explains the position of the first request; nil if its age alone decides.
func (l *line) ordering() *report.Ordering {
	if l.order == OrderFIFO {
		return nil
	}
	o := &report.Ordering{Order: string(l.order)}
	if l.tree != nil {
		o.Levels = l.tree.standings()
	}
	return o
}

// lines is a heap by the first request of each line. Groups share no agents but share limits,
// so among them priority and age decide whatever their orders are.
type lines []*line

func (l lines) Len() int           { return len(l) }
func (l lines) Less(i, j int) bool { return before(l[i].first(), l[j].first()) < 0 }
func (l lines) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lines) Push(x any)        { *l = append(*l, x.(*line)) }
func (l *lines) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	*l = (*l)[:last]
	return x
}

// before compares requests of the same priority by age.
func before(a, b *Request) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		a.Created.Compare(b.Created),
		bytes.Compare(a.SessionID[:], b.SessionID[:]),
	)
}

// Usage is the usage of a group by sessions of a user in a project between two times, spread
// evenly. Records can be split and merged.
type Usage struct {
	Group, Domain, Project, Owner uuid.UUID
	From, To                      time.Time
	Seconds                       map[string]float64 // per slot: amount times seconds
}

// Decay counts the usage of every holder of a group for OrderFairShare. A second
// of age a counts 2^(-a/HalfLife), and nothing beyond Lookback, so that a slot
// of which held(a) was taken at age a counts
//
//	D = integral from 0 to Lookback of held(a) * 2^(-a/HalfLife) da
//
// and the usage of a holder is the maximum over slots of D/(capacity*W), with
//
//	W = HalfLife/ln 2 * (1 - 2^(-Lookback/HalfLife))
//
// Who had the whole of some slot for all of Lookback has usage 1. The decay is
// Slurm's (PriorityDecayHalfLife); the maximum over slots, in the place of a
// weighted sum, is that of DRF. The answer is sorted and has no weights: append
// it to the shares that have.
func Decay(records []Usage, g *Group, capacity resource.Slots, now time.Time) []Share {
	sums := map[Share]map[string]float64{}
	levels := g.levels()
	for i := range records {
		u := &records[i]
		counts := g.Sharing.counts(u, now)
		if u.Group != g.ID || counts == 0 {
			continue
		}
		within := uuid.Nil
		for _, scope := range levels {
			id := idIn(scope, u.Domain, u.Project, u.Owner)
			key := Share{Group: g.ID, Scope: scope, ID: id, Within: within}
			if sums[key] == nil {
				sums[key] = map[string]float64{}
			}
			for slot, seconds := range u.Seconds {
				sums[key][slot] += counts * seconds
			}
			within = id
		}
	}
	window := g.Sharing.window()
	list := make([]Share, 0, len(sums))
	for share, seconds := range sums {
		for slot, n := range seconds {
			if has := capacity[slot]; has > 0 {
				share.Usage = max(share.Usage, n/(float64(has)*window))
			}
		}
		list = append(list, share)
	}
	slices.SortFunc(list, func(a, b Share) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), bytes.Compare(a.ID[:], b.ID[:]), bytes.Compare(a.Within[:], b.Within[:]))
	})
	return list
}

// counts returns the fraction of a record that still counts.
func (s *Sharing) counts(u *Usage, now time.Time) float64 {
	length := u.To.Sub(u.From).Seconds()
	if length <= 0 {
		return 0
	}
	old := min(now.Sub(u.From).Seconds(), s.lookback())
	young := min(max(now.Sub(u.To).Seconds(), 0), s.lookback())
	return math.Exp2(-young/s.halfLife()) * s.decayed(max(old-young, 0)) / length
}

// window returns the decayed usage of a constant amount of 1 over the lookback.
func (s *Sharing) window() float64 { return s.decayed(s.lookback()) }

// decayed returns the decayed usage of a constant amount of 1 up to an age in seconds.
func (s *Sharing) decayed(age float64) float64 {
	return -s.halfLife() / math.Ln2 * math.Expm1(-age/s.halfLife()*math.Ln2)
}

func (s *Sharing) halfLife() float64 { return cmp.Or(s.HalfLife, DefaultHalfLife).Seconds() }

func (s *Sharing) lookback() float64 { return cmp.Or(s.Lookback, DefaultLookback).Seconds() }

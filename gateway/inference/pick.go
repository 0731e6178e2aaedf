package inference

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// overflow limits how much more than the average a replica may have outstanding for a request to follow
// its prefix there: (average + 1) × overflow.
const overflow = 1.25

// set is the replicas of one model, and what is known of their caches.
type set struct {
	mu       sync.Mutex
	replicas []*replica
	prefixes *prefixes
}

// update replaces the targets. Replicas that stay keep their state.
func (s *set) update(targets []Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.replicas
	s.replicas = make([]*replica, 0, len(targets))
	for _, t := range targets {
		i := slices.IndexFunc(old, func(r *replica) bool { return r.ID == t.ID })
		if i < 0 {
			s.replicas = append(s.replicas, &replica{Target: t})
			continue
		}
		old[i].change(t)
		s.replicas = append(s.replicas, old[i])
	}
}

// any reports whether there is a replica that gets requests.
func (s *set) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.replicas, func(r *replica) bool { return r.look(time.Now()).weight > 0 })
}

// outstanding returns the number of requests at a replica.
func (s *set) outstanding(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		if r.ID == id {
			return r.look(time.Now()).outstanding
		}
	}
	return 0
}

// states returns what the replicas do now.
func (s *set) states() []ReplicaState {
	s.mu.Lock()
	all := slices.Clone(s.replicas)
	s.mu.Unlock()
	out := make([]ReplicaState, len(all))
	for i, r := range all {
		now := r.look(time.Now())
		out[i] = ReplicaState{ID: r.ID, Outstanding: now.outstanding, Ejected: now.out}
	}
	return out
}

// candidate is a replica that can get a request.
type candidate struct {
	*replica
	now state
}

// pick chooses a replica that is not among those that were tried, and counts the request at it. First
// a group is chosen by weight, so that every group gets its share. In the group, the replica of the request's session, and then that
// with the longest known prefix, has precedence unless it has too much to do; otherwise the better of two random ones gets the
// request, of those in the router's zone unless they all have too much to do. It returns nil if none can take it.
func (s *set) pick(blocks []uint64, tried []*replica, now time.Time) *replica {
	return s.pickIn(0, blocks, tried, now)
}

// pickIn is pick among the replicas of one group; 0: of all.
func (s *set) pickIn(group int, blocks []uint64, tried []*replica, now time.Time) *replica {
	s.mu.Lock()
	all := slices.Clone(s.replicas)
	s.mu.Unlock()
	for {
		open := of(group, all, tried, now)
		if len(open) == 0 {
			return nil
		}
		chosen := s.follow(open, blocks)
		if chosen == nil {
			chosen = lighter(near(open))
		}
		if chosen.takeIn(now, group != 0) {
			s.prefixes.add(blocks, chosen.ID)
			return chosen.replica
		}
		tried = append(slices.Clone(tried), chosen.replica) // another request took the last place
	}
}

// of returns the replicas of a group that can get a request that names it; 0: those of a group that is chosen by weight.
func of(group int, all, tried []*replica, now time.Time) (open []candidate) {
	if group == 0 {
		return oneGroup(candidates(all, tried, now))
	}
	for _, r := range all {
		s := r.look(now)
		if s.named && s.group == group && !slices.Contains(tried, r) {
			s.weight = max(s.weight, 1) // the group has no share, and is chosen by name
			open = append(open, candidate{r, s})
		}
	}
	return open
}

// candidates returns the replicas that can get a request.
func candidates(all, tried []*replica, now time.Time) (open []candidate) {
	for _, r := range all {
		s := r.look(now)
		if s.open && !slices.Contains(tried, r) {
			open = append(open, candidate{r, s})
		}
	}
	return open
}

// oneGroup returns the candidates of one group, which is chosen by weight.
func oneGroup(open []candidate) []candidate {
	if len(open) == 0 {
		return nil
	}
	group := weighted(open).now.group
	return slices.DeleteFunc(open, func(c candidate) bool { return c.now.group != group })
}

// follow returns the replica of the session, or that has the longest prefix in its cache, or nil.
func (s *set) follow(open []candidate, blocks []uint64) *candidate {
	most := most(open)
	for id := range s.prefixes.owners(blocks) {
		for i := range open {
			if c := &open[i]; c.ID == id && !c.now.out && c.now.outstanding <= most {
				return c
			}
		}
	}
	return nil
}

// most returns the number of requests above which a replica has too much to do.
func most(open []candidate) int {
	total := 0
	for _, c := range open {
		total += c.now.outstanding
	}
	return int((float64(total)/float64(len(open)) + 1) * overflow)
}

// near returns the candidates in the zone of the router that do not have too much to do; all if there is none.
func near(open []candidate) []candidate {
	most := most(open)
	var out []candidate
	for _, c := range open {
		if c.now.near && !c.now.out && c.now.outstanding <= most {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return open
	}
	return out
}

// lighter returns the one of two random replicas that has less to do for its weight. They are chosen by weight, so the
// weights are the shares of replicas that have nothing to do.
func lighter(open []candidate) *candidate {
	a, b := weighted(open), weighted(open)
	load := func(c *candidate) float64 { return float64(c.now.outstanding) / float64(c.now.weight) }
	if cmp.Compare(load(b), load(a)) < 0 {
		return b
	}
	return a
}

func weighted(open []candidate) *candidate {
	sum := 0
	for _, c := range open {
		sum += c.now.weight
	}
	n := rand.IntN(sum)
	for i := range open {
		if n -= open[i].now.weight; n < 0 {
			return &open[i]
		}
	}
	return &open[len(open)-1]
}

package rollout

import (
	"cmp"
	"slices"
	"time"
)

// fleet is the replicas of a deployment, the youngest of a phase first.
type fleet []Replica

func newFleet(replicas []Replica) fleet {
	f := slices.Clone(replicas)
	slices.SortStableFunc(f, func(a, b Replica) int { return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.ID, b.ID)) })
	return f
}

func (f fleet) of(p Phase) (out []Replica) {
	for _, r := range f {
		if r.Phase == p {
			out = append(out, r)
		}
	}
	return out
}

func (f fleet) only(revision int, p Phase) (out []Replica) {
	for _, r := range f.of(p) {
		if r.Revision == revision {
			out = append(out, r)
		}
	}
	return out
}

func (f fleet) count(revision int, p Phase) int { return len(f.only(revision, p)) }

// liveOf returns the number of replicas that serve or will.
func (f fleet) liveOf(revision int) int {
	return f.count(revision, Starting) + f.count(revision, Ready)
}

func (f fleet) live() int { return len(f.of(Starting)) + len(f.of(Ready)) }

// youngest returns for how long all ready replicas of a revision have been ready.
func (f fleet) youngest(revision int, now time.Time) time.Duration {
	ready := f.only(revision, Ready)
	if len(ready) == 0 {
		return 0
	}
	return now.Sub(ready[0].Since)
}

// revisions returns the revisions that have replicas, the oldest first.
func (f fleet) revisions() (out []int) {
	for _, r := range f {
		if !slices.Contains(out, r.Revision) {
			out = append(out, r.Revision)
		}
	}
	slices.Sort(out)
	return out
}

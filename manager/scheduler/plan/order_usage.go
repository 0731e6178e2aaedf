package plan

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

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

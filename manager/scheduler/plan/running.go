package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// Running is a session with its allocations.
type Running struct {
	SessionID                     uuid.UUID
	Owner, Project, Domain, Group uuid.UUID
	Slots                         resource.Slots // that count towards limits
	Holds                         []Alloc

	Priority    int
	Since       time.Time // start of its run; zero: it is still starting
	Ends        time.Time // latest end; zero: unknown
	Leaving     bool      // it was requested to end
	Preemptible bool
	Together    uuid.UUID // its session group, if any
}

// live is a running session with its devices in the cluster.
type live struct {
	*Running
	holds []taking
}

// spot is the place of a device in the cluster.
type spot struct{ agent, device int }

// lives returns the sessions with allocations in a group, ordered by id.
func (q *queue) lives(group uuid.UUID) []live {
	if q.live != nil {
		return q.live[group]
	}
	if q.spots == nil {
		q.spots = map[uuid.UUID]spot{}
		for i := range q.c.agents {
			for j := range q.c.agents[i].devices {
				q.spots[q.c.agents[i].devices[j].src.ID] = spot{i, j}
			}
		}
	}
	q.live, q.leaving = map[uuid.UUID][]live{}, map[int][]taking{}
	for _, g := range q.groups {
		g.evictable = nil
	}
	for i := range q.src.Running {
		x := &q.src.Running[i]
		l := live{Running: x, holds: make([]taking, 0, len(x.Holds))}
		for _, h := range x.Holds {
			at, here := q.spots[h.DeviceID]
			slot, known := q.c.number[h.Slot]
			if here && known {
				l.holds = append(l.holds, taking{at.agent, at.device, slot, h.Amount})
			}
		}
		q.live[x.Group] = append(q.live[x.Group], l)
		if l.Leaving {
			q.leave(l)
		}
	}
	for _, list := range q.live {
		slices.SortFunc(list, func(a, b live) int { return slices.Compare(a.SessionID[:], b.SessionID[:]) })
	}
	return q.live[group]
}

// leave records that a session ends soon.
func (q *queue) leave(l live) {
	for _, h := range l.holds {
		q.leaving[h.agent] = append(q.leaving[h.agent], h)
	}
}

// ending returns the sessions of a group with a known end, ordered by it: running ones, and
// those that were placed in this pass.
func (q *queue) ending(group uuid.UUID) []live {
	var list []live
	seen := map[uuid.UUID]bool{}
	for _, l := range q.lives(group) {
		if seen[l.SessionID] = true; !l.Leaving && !q.victims[l.SessionID] && !l.Ends.IsZero() {
			list = append(list, l)
		}
	}
	for _, l := range q.placed {
		if l.Group == group && !seen[l.SessionID] && !l.Ends.IsZero() {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b live) int {
		return cmp.Or(a.Ends.Compare(b.Ends), slices.Compare(a.SessionID[:], b.SessionID[:]))
	})
	return list
}

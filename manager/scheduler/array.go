package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// array is the members of an array that have not ended, of an array that limits how many run at
// once. The planner sees only as many members as may run: the others wait here, so that an array of
// thousands costs the planner no more than its limit.
type array struct {
	name   string
	most   int
	active map[uuid.UUID]bool // in the queue of the planner, or placed
	parked map[uuid.UUID]int  // indexes of the others
}

// admits reports whether a session belongs into the planner's queue. A member of an array with a
// limit does if it was in the queue before, or if fewer members than the limit are active.
func (m *model) admits(id uuid.UUID, now *live) bool {
	waits := now != nil && now.status == lifecycle.Pending
	a := m.arrayOf(id, now)
	if a == nil {
		return waits
	}
	occupies := now != nil && (slices.Contains(lifecycle.Occupying, now.status) || len(now.allocs) > 0)
	if waits && !a.active[id] && a.most > 0 && len(a.active) >= a.most {
		if _, known := a.parked[id]; !known {
			a.parked[id] = now.array.index
			m.parked = append(m.parked, plan.Decision{SessionID: id, Waiting: m.heldBack(a)})
		}
		return false
	}
	m.unpark(a, id)
	if waits || occupies {
		a.active[id] = true
	} else {
		delete(a.active, id)
		delete(m.members, id)
	}
	return waits
}

// arrayOf returns the array of a session, or nil.
func (m *model) arrayOf(id uuid.UUID, now *live) *array {
	if now == nil || now.array.array == uuid.Nil {
		return m.arrays[m.members[id]]
	}
	key := now.array.array
	a := m.arrays[key]
	if a == nil {
		a = &array{active: map[uuid.UUID]bool{}, parked: map[uuid.UUID]int{}}
		m.arrays[key] = a
	}
	if now.array.most > 0 {
		a.name, a.most = now.array.name, now.array.most
	}
	m.members[id] = key
	return a
}

// putAll updates sessions from their rows: running ones before waiting members of arrays, so that
// the limit of an array is not exceeded, and waiting members in the order of their indexes.
func (m *model) putAll(rows map[uuid.UUID]*live) {
	var waiting []uuid.UUID
	for id, l := range rows {
		if l.array.array != uuid.Nil && l.status == lifecycle.Pending {
			waiting = append(waiting, id)
			continue
		}
		m.put(id, l)
	}
	slices.SortFunc(waiting, func(a, b uuid.UUID) int {
		return cmp.Or(cmp.Compare(rows[a].array.index, rows[b].array.index), slices.Compare(a[:], b[:]))
	})
	for _, id := range waiting {
		m.put(id, rows[id])
	}
}

// unpark removes a member from those that are held back. The reasonWriter drops its reason.
func (m *model) unpark(a *array, id uuid.UUID) {
	if _, known := a.parked[id]; known {
		delete(a.parked, id)
		m.change.Gone = append(m.change.Gone, id)
	}
}

// advance queues as many held back members as the limit now allows, the lowest index first, and
// removes an array without members.
func (m *model) advance(key uuid.UUID) {
	a := m.arrays[key]
	if a == nil {
		return
	}
	for len(a.parked) > 0 && (a.most == 0 || len(a.active) < a.most) {
		var next uuid.UUID
		least := -1
		for id, index := range a.parked {
			if least < 0 || index < least {
				next, least = id, index
			}
		}
		m.queue(next, m.live[next])
	}
	if len(a.active)+len(a.parked) == 0 {
		delete(m.arrays, key)
	}
}

// heldBack is why a member of an array waits.
func (m *model) heldBack(a *array) *report.Pending {
	return &report.Pending{
		Stage: report.StageHeld, DecidedAt: m.snap.Now,
		Summary: fmt.Sprintf("It waits for other members of array %s, of which at most %d run at once.", a.name, a.most),
	}
}

// takeParked returns the members that were held back since the last call.
func (m *model) takeParked() []plan.Decision {
	list := m.parked
	m.parked = nil
	return list
}

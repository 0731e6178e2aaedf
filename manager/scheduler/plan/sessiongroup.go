package plan

import (
	"fmt"

	"github.com/google/uuid"
)

// Together is the placement of the sessions of one session group: each on an agent of its own
// or, packed, on as few agents as possible. If Strict, a session waits rather than violate
// this.
//
// A packed session goes to an agent of another session of its group. If none has room, it
// waits if strict; otherwise it goes where all waiting sessions of its group would fit, or
// else anywhere.
type Together struct {
	ID     uuid.UUID
	Spread bool
	Strict bool
}

// members counts the sessions of a session group by agent.
type members struct {
	on      map[int]int
	version int     // incremented by each placement
	waiting []int64 // requested amounts of waiting sessions
	most    float64 // the largest fraction of these that an agent has free
	looked  int     // computed at version looked-1
}

// of returns the members of a request's session group.
func (q *queue) of(r *Request) *members {
	if q.members == nil {
		q.members = map[uuid.UUID]*members{}
		for group := range q.groups {
			for _, l := range q.lives(group) {
				if l.Together != uuid.Nil {
					q.join(l.Together, l.holds)
				}
			}
		}
	}
	if q.members[r.Together.ID] == nil {
		q.members[r.Together.ID] = &members{on: map[int]int{}}
	}
	return q.members[r.Together.ID]
}

func (q *queue) join(id uuid.UUID, holds []taking) {
	m := q.members[id]
	if m == nil {
		m = &members{on: map[int]int{}}
		q.members[id] = m
	}
	for _, i := range agentsOf(holds) {
		m.on[i]++
	}
	m.version++
}

// joined records the agents of a placed session of a session group.
func (q *queue) joined(r *Request, takings []taking) {
	if r.Together != nil {
		q.of(r)
		q.join(r.Together.ID, takings)
	}
}

// excluded reports whether a request must not run on an agent.
func (q *queue) excluded(r *Request, a *agent) bool { return r.excluded(a.src.ID) || q.apart(r, a) }

// apart reports whether the session group excludes a request from an agent.
func (q *queue) apart(r *Request, a *agent) bool {
	if r.Together == nil || !r.Together.Strict {
		return false
	}
	m := q.of(r)
	if r.Together.Spread {
		return m.on[int(a.number)] > 0
	}
	return len(m.on) > 0 && m.on[int(a.number)] == 0
}

// circle is the part of a profile's key that depends on a session group.
func (q *queue) circle(r *Request) string {
	if r.Together == nil || !r.Together.Strict {
		return ""
	}
	return fmt.Sprint("\x00", r.Together.ID, q.of(r).version)
}

// Preferences of a session group for an agent.
const (
	fits   = iota
	roomy  // packed: all waiting sessions fit
	misfit // not preferred by the session group
	places
)

// order returns the preference of a request for an agent: first by its own rank, then by that
// of its session group.
func (q *queue) order(r *Request, a *agent) int {
	return int(r.rank(a.src.ID))*places + q.suits(r, a)
}

// orders returns the preferences that agents can have.
func (q *queue) orders(r *Request) (list []int) {
	for _, rank := range r.ranks() {
		list = append(list, int(rank)*places)
		if r.Together != nil {
			list = append(list, int(rank)*places+roomy, int(rank)*places+misfit)
		}
	}
	return list
}

func (q *queue) suits(r *Request, a *agent) int {
	if r.Together == nil {
		return fits
	}
	m := q.of(r)
	switch with := m.on[int(a.number)] > 0; {
	case with != r.Together.Spread:
		return fits
	case !r.Together.Spread && q.hasRoom(r, a):
		return roomy
	}
	return misfit
}

// hasRoom reports whether an agent has enough free, by the sums, for all waiting sessions of a
// session group or, if no agent has, for as many as any other.
func (q *queue) hasRoom(r *Request, a *agent) bool {
	m := q.of(r)
	if m.waiting == nil {
		m.waiting = make([]int64, len(q.c.slots))
		for i := range q.src.Pending {
			if o := &q.src.Pending[i]; o.Together != nil && o.Together.ID == r.Together.ID && o.Group == r.Group {
				q.c.sumUp(m.waiting, o)
			}
		}
	}
	if m.looked != m.version+1 {
		m.looked, m.most = m.version+1, 0
		for _, i := range q.groups[r.Group].agents {
			if o := &q.c.agents[i]; o.src.Schedulable {
				m.most = max(m.most, o.part(m.waiting))
			}
		}
	}
	return a.part(m.waiting) >= m.most
}

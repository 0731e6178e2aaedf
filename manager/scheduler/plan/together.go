package plan

import (
	"fmt"

	"github.com/google/uuid"
)

// Together says how sessions of one session group are placed to each other:
// each on an agent of its own or, packed, on as few agents as possible. When
// Strict, one waits rather than be placed otherwise.
//
// A packed session goes to an agent that one of its group is on; if that has no
// room it waits when strict, and else goes where all that wait of its group would
// have room, or, failing that, anywhere.
type Together struct {
	ID     uuid.UUID
	Spread bool
	Strict bool
}

// members counts, by agent, the sessions of a session group.
type members struct {
	on      map[int]int
	version int     // grows with each
	waiting []int64 // what those ask for that wait
	most    float64 // the part of it that an agent has room for
	looked  int     // at version looked-1
}

// of are the members of a request's session group.
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

// joined notes where a session of a session group is placed.
func (q *queue) joined(r *Request, takings []taking) {
	if r.Together != nil {
		q.of(r)
		q.join(r.Together.ID, takings)
	}
}

// barred reports whether a request must not run on an agent.
func (q *queue) barred(r *Request, a *agent) bool { return r.barred(a.src.ID) || q.apart(r, a) }

// apart reports whether its session group keeps a request from an agent.
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

// circle names what of a profile depends on a session group.
func (q *queue) circle(r *Request) string {
	if r.Together == nil || !r.Together.Strict {
		return ""
	}
	return fmt.Sprint("\x00", r.Together.ID, q.of(r).version)
}

// The places of an agent for a session group.
const (
	fits   = iota
	roomy  // packed: it has room for all that wait
	misfit // it is not what the session group prefers
	places
)

// order is the place of an agent in the order in which a request takes them: by
// its own rank, and then by what its session group prefers.
func (q *queue) order(r *Request, a *agent) int {
	return int(r.rank(a.src.ID))*places + q.suits(r, a)
}

// orders lists the places that agents can have.
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

// hasRoom reports whether an agent has room, as far as sums tell, for all of a
// session group that wait or, if none has, for as much of that as any.
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

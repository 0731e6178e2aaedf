package session

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
)

// queue hands out session ids, each to one worker at a time. An id that is
// added while its worker is busy comes again afterwards; one that is added
// twice before comes once.
type queue struct {
	mu    sync.Mutex
	order []uuid.UUID
	state map[uuid.UUID]itemState
	later map[uuid.UUID]*time.Timer
	wake  chan struct{}
}

type itemState int

const (
	waiting itemState = iota + 1
	busy
	busyAgain // added while busy
)

func newQueue() *queue {
	return &queue{state: map[uuid.UUID]itemState{}, later: map[uuid.UUID]*time.Timer{}, wake: make(chan struct{}, 1)}
}

// addAfter adds an id in a while. It takes the place of an earlier wish for
// the same id, so that an id which is looked at often does not come ever more
// often.
func (q *queue) addAfter(id uuid.UUID, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old := q.later[id]; old != nil {
		old.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		q.mu.Lock()
		if q.later[id] == t {
			delete(q.later, id)
		}
		q.mu.Unlock()
		q.add(id)
	})
	q.later[id] = t
}

func (q *queue) add(id uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.state[id] {
	case waiting, busyAgain:
		return
	case busy:
		q.state[id] = busyAgain
		return
	}
	q.state[id] = waiting
	q.order = append(q.order, id)
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next returns an id that no one works on, or false when ctx has ended.
func (q *queue) next(ctx context.Context) (uuid.UUID, bool) {
	for ctx.Err() == nil { // what is left is for the next term
		q.mu.Lock()
		if len(q.order) > 0 {
			id := q.order[0]
			q.order = q.order[1:]
			q.state[id] = busy
			if len(q.order) > 0 {
				q.signal() // another worker may continue
			}
			q.mu.Unlock()
			return id, true
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-q.wake:
		}
	}
	return uuid.Nil, false
}

func (q *queue) done(id uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state[id] == busyAgain {
		q.state[id] = waiting
		q.order = append(q.order, id)
		q.signal()
		return
	}
	delete(q.state, id)
}

// observation is what one agent said of one kernel.
type observation struct {
	agent uuid.UUID
	*agentpb.KernelState
}

// observations are the latest states of kernels as agents told them. What one
// agent says of a kernel does not hide what another says of it: after a
// partition two may have a container of the same kernel.
type observations struct {
	mu sync.Mutex
	m  map[uuid.UUID]map[uuid.UUID]observation // kernel, agent
}

func newObservations() *observations {
	return &observations{m: map[uuid.UUID]map[uuid.UUID]observation{}}
}

// put keeps a state unless a later one of the same or a later launch is known.
func (o *observations) put(kernel uuid.UUID, next observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, ok := o.m[kernel][next.agent]
	if ok && (old.LaunchEpoch > next.LaunchEpoch || old.LaunchEpoch == next.LaunchEpoch && old.Phase > next.Phase) {
		return
	}
	if o.m[kernel] == nil {
		o.m[kernel] = map[uuid.UUID]observation{}
	}
	o.m[kernel][next.agent] = next
}

// current returns the state of a kernel's present launch on the agent where
// it is placed.
func (o *observations) current(k *ent.Kernel) (observation, bool) {
	if k.AgentID == nil {
		return observation{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	ob, ok := o.m[k.ID][*k.AgentID]
	return ob, ok && ob.LaunchEpoch == k.LaunchEpoch
}

// all returns what every agent says of a kernel.
func (o *observations) all(kernel uuid.UUID) []observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.m[kernel]))
}

func (o *observations) drop(kernel, agent uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.m[kernel], agent)
	if len(o.m[kernel]) == 0 {
		delete(o.m, kernel)
	}
}

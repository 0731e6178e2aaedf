package session

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
)

// queue hands out session ids, each to one worker at a time. An id that is
// added while its worker is busy comes again afterwards; one that is added
// twice before comes once.
type queue struct {
	mu    sync.Mutex
	order []uuid.UUID
	state map[uuid.UUID]itemState
	wake  chan struct{}
}

type itemState int

const (
	waiting itemState = iota + 1
	busy
	busyAgain // added while busy
)

func newQueue() *queue {
	return &queue{state: map[uuid.UUID]itemState{}, wake: make(chan struct{}, 1)}
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

// next returns an id that nobody works on, or false when ctx has ended.
func (q *queue) next(ctx context.Context) (uuid.UUID, bool) {
	for {
		q.mu.Lock()
		if len(q.order) > 0 {
			id := q.order[0]
			q.order = q.order[1:]
			q.state[id] = busy
			if len(q.order) > 0 {
				q.signal() // another worker may go on
			}
			q.mu.Unlock()
			return id, true
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return uuid.Nil, false
		case <-q.wake:
		}
	}
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

// observations are the latest states of kernels as agents told them.
type observations struct {
	mu sync.Mutex
	m  map[uuid.UUID]observation
}

func newObservations() *observations { return &observations{m: map[uuid.UUID]observation{}} }

// put keeps a state unless a later one of the same or a later launch is known.
func (o *observations) put(kernel uuid.UUID, next observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old, ok := o.m[kernel]; ok {
		if old.LaunchEpoch > next.LaunchEpoch || old.LaunchEpoch == next.LaunchEpoch && old.Phase > next.Phase {
			return
		}
	}
	o.m[kernel] = next
}

func (o *observations) get(kernel uuid.UUID) (observation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ob, ok := o.m[kernel]
	return ob, ok
}

func (o *observations) drop(kernel uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.m, kernel)
}

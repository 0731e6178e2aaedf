package store

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// Limit limits how many of a shared resource each person uses at once: running operations,
// subscriptions, terminals, connections to the database. The zero value is ready to use. A person
// who uses none takes no memory.
type Limit struct {
	mu sync.Mutex
	m  map[uuid.UUID]*places
}

// places are the places of one person.
type places struct {
	users int // number of callers that have a place or wait for one
	taken chan struct{}
}

// Take waits for one of the person's `most` places until ctx ends, and then returns the error of
// ctx. leave frees the place; further calls of it do nothing. All calls must pass the same number.
func (l *Limit) Take(ctx context.Context, who uuid.UUID, most int) (leave func(), err error) {
	p := l.of(who, most)
	select {
	case p.taken <- struct{}{}:
		return l.leave(who, p), nil
	case <-ctx.Done():
		l.forget(who, p)
		return nil, ctx.Err()
	}
}

// Try is Take without waiting; ok is false while all places of the person are taken.
func (l *Limit) Try(who uuid.UUID, most int) (leave func(), ok bool) {
	p := l.of(who, most)
	select {
	case p.taken <- struct{}{}:
		return l.leave(who, p), true
	default:
		l.forget(who, p)
		return nil, false
	}
}

func (l *Limit) of(who uuid.UUID, most int) *places {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[uuid.UUID]*places{}
	}
	p := l.m[who]
	if p == nil {
		p = &places{taken: make(chan struct{}, most)}
		l.m[who] = p
	}
	p.users++
	return p
}

func (l *Limit) leave(who uuid.UUID, p *places) func() {
	return sync.OnceFunc(func() {
		<-p.taken
		l.forget(who, p)
	})
}

// forget removes a caller, and drops a person without any.
func (l *Limit) forget(who uuid.UUID, p *places) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(l.m, who)
	}
}

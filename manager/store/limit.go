package store

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// Limit bounds what each person has at once of something that all share: operations that
// run, subscriptions, terminals, connections to the database. The zero value is ready. A
// person who has nothing takes no memory.
type Limit struct {
	mu sync.Mutex
	m  map[uuid.UUID]*places
}

// places are those of one person.
type places struct {
	users int // who have one or wait for one
	taken chan struct{}
}

// Take waits for one of the most places of the person until ctx ends, and then returns its
// error. leave gives the place back; further calls of it do nothing. All calls name the
// same number.
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

// Try is Take without waiting; ok is false while the person has all places.
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

// forget counts one user less, and drops a person who has nothing.
func (l *Limit) forget(who uuid.UUID, p *places) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(l.m, who)
	}
}

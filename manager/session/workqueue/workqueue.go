// Package workqueue has the sessions that the reconciler checks next, and what it remembers of those
// that it has checked.
package workqueue

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
)

// Queue hands out session ids, each to one worker at a time. An id that is added while a worker
// handles it is handed out again afterwards; an id that is added twice before is handed out once.
type Queue struct {
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

// New returns an empty queue.
func New() *Queue {
	return &Queue{state: map[uuid.UUID]itemState{}, later: map[uuid.UUID]*time.Timer{}, wake: make(chan struct{}, 1)}
}

// AddAfter adds an id after a delay. It replaces an earlier delayed addition of the same id, so
// that the additions of a frequently checked id do not pile up.
func (q *Queue) AddAfter(id uuid.UUID, d time.Duration) {
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
		q.Add(id)
	})
	q.later[id] = t
}

// Add adds an id.
func (q *Queue) Add(id uuid.UUID) {
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

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Next returns an id that no worker handles, or false after ctx has ended.
func (q *Queue) Next(ctx context.Context) (uuid.UUID, bool) {
	for ctx.Err() == nil { // the next leader handles the rest
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

// Done returns an id after its worker has handled it.
func (q *Queue) Done(id uuid.UUID) {
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

// Seen has the versions of live sessions at the reconciler's last check.
type Seen struct {
	mu sync.Mutex
	m  map[uuid.UUID]int
}

// Clear removes all versions.
func (s *Seen) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m = map[uuid.UUID]int{}
}

// Put records the version of a session, unless a later one is recorded.
func (s *Seen) Put(id uuid.UUID, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[uuid.UUID]int{}
	}
	s.m[id] = max(s.m[id], version)
}

// Unseen returns the live sessions, in their order, whose version differs from the one at the last
// check, and drops sessions that are not live.
func (s *Seen) Unseen(live []*ent.Session) (news []uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.m
	s.m = make(map[uuid.UUID]int, len(live))
	for _, row := range live {
		version, looked := before[row.ID]
		if looked {
			s.m[row.ID] = version
		}
		if version != row.Version {
			news = append(news, row.ID)
		}
	}
	return news
}

// Kept are sessions whose containers are being started, as they were read before.
type Kept struct {
	// For limits the age of a kept session: a change of its agents' rows, which are kept with it, does
	// not change the version of the session.
	For time.Duration

	mu sync.Mutex
	m  map[uuid.UUID]keptSession
}

type keptSession struct {
	sess *ent.Session
	read time.Time
}

// Put keeps a session that was read at a time.
func (k *Kept) Put(sess *ent.Session, read time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[uuid.UUID]keptSession{}
	}
	k.m[sess.ID] = keptSession{sess, read}
}

// Take removes and returns a kept session and the time at which it was read; nil if there is none.
func (k *Kept) Take(id uuid.UUID) (*ent.Session, time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one, ok := k.m[id]
	delete(k.m, id)
	if !ok || clock.Now().Sub(one.read) > k.For {
		return nil, time.Time{}
	}
	return one.sess, one.read
}

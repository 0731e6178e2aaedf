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
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
)

// queue hands out session ids, each to one worker at a time. An id that is added while a worker
// handles it is handed out again afterwards; an id that is added twice before is handed out once.
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

// addAfter adds an id after a delay. It replaces an earlier delayed addition of the same id, so
// that the additions of a frequently checked id do not pile up.
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

// next returns an id that no worker handles, or false after ctx has ended.
func (q *queue) next(ctx context.Context) (uuid.UUID, bool) {
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

// observation is the state of a kernel as reported by one agent.
type observation struct {
	agent uuid.UUID
	*agentpb.KernelState
}

// observations are the latest states of kernels as agents reported them. The reports of one agent
// do not hide those of another one: after a partition, two agents can have a container of the same
// kernel.
type observations struct {
	mu sync.Mutex
	m  map[uuid.UUID]map[uuid.UUID]observation // kernel, agent
}

func newObservations() *observations {
	return &observations{m: map[uuid.UUID]map[uuid.UUID]observation{}}
}

// put stores a state unless a later state of the same or of a later launch is stored.
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

// all returns the reports of all agents about a kernel.
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

// seen has the versions of live sessions at the reconciler's last check.
type seen struct {
	mu sync.Mutex
	m  map[uuid.UUID]int
}

func (s *seen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m = map[uuid.UUID]int{}
}

func (s *seen) put(id uuid.UUID, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[uuid.UUID]int{}
	}
	s.m[id] = max(s.m[id], version)
}

// unseen returns the live sessions, in their order, whose version differs from the one at the last
// check, and drops sessions that are not live.
func (s *seen) unseen(live []*ent.Session) (news []uuid.UUID) {
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

// kept are sessions whose containers are being started, as they were read before.
type kept struct {
	mu sync.Mutex
	m  map[uuid.UUID]keptSession
}

type keptSession struct {
	sess *ent.Session
	read time.Time
}

// keepFor limits the age of a kept session: a change of its agents' rows, which are kept with it,
// does not change the version of the session. A pass has the same interval.
const keepFor = passEvery

func (k *kept) put(sess *ent.Session, read time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[uuid.UUID]keptSession{}
	}
	k.m[sess.ID] = keptSession{sess, read}
}

// take removes and returns a kept session and the time at which it was read; nil if there is none.
func (k *kept) take(id uuid.UUID) (*ent.Session, time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one, ok := k.m[id]
	delete(k.m, id)
	if !ok || clock.Now().Sub(one.read) > keepFor {
		return nil, time.Time{}
	}
	return one.sess, one.read
}

// troubled returns sessions with a kernel on an agent that they may have to leave: a drained or
// lost one. Such a change of an agent does not change the version of the session.
var troubled = session.HasKernelsWith(kernel.HasAgentWith(agent.Or(
	agent.StatusNEQ(agent.StatusAlive), agent.DrainActionNotNil())))

// pass queues the sessions that are between two states, that have changed since the last check, or
// that left something behind; with all, every live session. A session that only runs costs a
// fraction of one statement.
func (s *Service) pass(ctx context.Context, all bool) {
	live := []predicate.Session{session.TerminatedAtIsNil(), session.StatusNEQ(lifecycle.Pending)}
	if err := s.queueLive(ctx, live, all); err != nil && ctx.Err() == nil {
		s.Logger.Error("list live sessions", "error", err)
	}
	for _, id := range s.Orphans.sessions() {
		s.queue.add(id)
	}
}

func (s *Service) queueLive(ctx context.Context, live []predicate.Session, all bool) error {
	rows, err := s.Client.Session.Query().Where(live...).
		Select(session.FieldID, session.FieldVersion, session.FieldStatus).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if all || row.Status != lifecycle.Running {
			s.queue.add(row.ID)
		}
	}
	for _, id := range s.seen.unseen(rows) {
		s.queue.add(id)
	}
	if all {
		return nil
	}
	away, err := s.Client.Session.Query().Where(append(live, troubled)...).IDs(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return err
	}
	for _, id := range away {
		s.queue.add(id)
	}
	return nil
}

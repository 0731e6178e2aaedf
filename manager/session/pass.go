package session

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
)

// seen holds the versions of live sessions that the reconciler has looked at last.
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

// news returns those of the live sessions, in their order, whose version is not the one
// that was looked at, and drops all that do not live.
func (s *seen) news(live []*ent.Session) (news []uuid.UUID) {
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

// kept are sessions whose agents start their containers, as they were read before.
type kept struct {
	mu sync.Mutex
	m  map[uuid.UUID]keptSession
}

type keptSession struct {
	sess *ent.Session
	read time.Time
}

// keepFor bounds how old a kept session is: a change of its agents' rows, which are
// kept with it, gives the session no other version. The pass looks as often.
const keepFor = passEvery

func (k *kept) put(sess *ent.Session, read time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[uuid.UUID]keptSession{}
	}
	k.m[sess.ID] = keptSession{sess, read}
}

// take returns a session that is kept and when it was read, nil if there is none, and
// keeps it no longer.
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

// troubled are sessions with a kernel on an agent that they may have to leave: one
// that is drained or away. That changes no session's version.
var troubled = session.HasKernelsWith(kernel.HasAgentWith(agent.Or(
	agent.StatusNEQ(agent.StatusAlive), agent.DrainActionNotNil())))

// pass queues what is on its way from one state to another, what has changed since
// it was looked at, and what left something behind; all of it is every session that
// is not over. A session that just runs costs a part of one statement.
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
	for _, id := range s.seen.news(rows) {
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

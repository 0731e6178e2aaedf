package session

import (
	"context"
	"maps"
	"sync"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/session"
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

// news returns the sessions of the list whose version is another than the one that
// was looked at, and drops what is not in the list.
func (s *seen) news(now map[uuid.UUID]int) (news []uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.m, func(id uuid.UUID, _ int) bool { _, lives := now[id]; return !lives })
	for id, version := range now {
		if s.m[id] != version {
			news = append(news, id)
		}
	}
	return news
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
	for _, id := range s.strays.sessions() {
		s.queue.add(id)
	}
}

func (s *Service) queueLive(ctx context.Context, live []predicate.Session, all bool) error {
	rows, err := s.Client.Session.Query().Where(live...).
		Select(session.FieldID, session.FieldVersion, session.FieldStatus).All(ctx)
	if err != nil {
		return err
	}
	now := make(map[uuid.UUID]int, len(rows))
	for _, row := range rows {
		now[row.ID] = row.Version
		if all || row.Status != lifecycle.Running {
			s.queue.add(row.ID)
		}
	}
	for _, id := range s.seen.news(now) {
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

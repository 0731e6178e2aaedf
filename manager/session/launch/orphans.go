// Package launch has the launches of kernels as agents report them, and the orphans among them. It is
// the memory of one leader: every agent reports its containers to a new leader.
package launch

import (
	"maps"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/session/agentcall"
	"github.com/berthhq/berth/manager/store"
)

// Orphans are launches whose containers still use devices although no session refers to
// them: the session gave the launch up before its agent confirmed the container's exit, or
// the agent reconnected with it. Until the container has exited, no other session can use
// its devices. The agents report their containers to every new leader.
type Orphans struct {
	mu sync.Mutex
	m  map[uuid.UUID]map[ID]Orphan // by agent
}

// NewOrphans returns an empty set, for a Service and the scheduler.
func NewOrphans() *Orphans { return &Orphans{m: map[uuid.UUID]map[ID]Orphan{}} }

// ID is one start of a kernel. An agent has at most one container of a kernel: a later
// launch begins when the one before has ended.
type ID struct {
	Kernel uuid.UUID
	Epoch  int64
}

// Orphan is the use of devices by one launch.
type Orphan struct {
	Session uuid.UUID
	GivenUp time.Time // by its session; zero: only its agent has reported it
	Holds   []*agentpb.Allocation
}

// ReportDelay limits how much older than the request for a launch an agent's list can be. No call takes
// that long.
const ReportDelay = 2 * agentcall.Timeout

// Set replaces the orphans of an agent. It keeps those that were given up so recently that
// the agent's list may not contain them yet.
func (s *Orphans) Set(agent uuid.UUID, now map[ID]Orphan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, old := range s.m[agent] {
		one, listed := now[l]
		switch {
		case listed:
			one.GivenUp = old.GivenUp
			now[l] = one
		case clock.Now().Sub(old.GivenUp) < ReportDelay:
			now[l] = old
		}
	}
	delete(s.m, agent)
	if len(now) > 0 {
		s.m[agent] = now
	}
}

// Add adds an orphan, and reports whether it is a new one.
func (s *Orphans) Add(agent uuid.UUID, l ID, one Orphan) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.m[agent][l]
	if s.m[agent] == nil {
		s.m[agent] = map[ID]Orphan{}
	}
	s.m[agent][l] = one
	return !was
}

// Drop removes the orphans of a kernel on an agent up to the last ID, as they have
// ended, and reports whether there were any.
func (s *Orphans) Drop(agent uuid.UUID, last ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.m[agent])
	maps.DeleteFunc(s.m[agent], func(l ID, _ Orphan) bool { return l.Kernel == last.Kernel && l.Epoch <= last.Epoch })
	left := len(s.m[agent])
	if left == 0 {
		delete(s.m, agent)
	}
	return left < before
}

// Sessions returns the sessions that gave launches up.
func (s *Orphans) Sessions() []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[uuid.UUID]bool{}
	for _, on := range s.m {
		for _, one := range on {
			if !one.GivenUp.IsZero() {
				found[one.Session] = true
			}
		}
	}
	return store.IDs(found)
}

// Of returns, by agent, the launches that a session gave up.
func (s *Orphans) Of(session uuid.UUID) map[uuid.UUID][]ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[uuid.UUID][]ID{}
	for agent, on := range s.m {
		for l, one := range on {
			if one.Session == session && !one.GivenUp.IsZero() {
				found[agent] = append(found[agent], l)
			}
		}
	}
	return found
}

// On returns the slots that orphans use on an agent, by the agent's device names.
func (s *Orphans) On(agent uuid.UUID) map[string]resource.Slots {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum map[string]resource.Slots
	for _, one := range s.m[agent] {
		for _, a := range one.Holds {
			amount, err := resource.Parse(a.Slot, a.Amount)
			if err != nil {
				continue
			}
			if sum == nil {
				sum = map[string]resource.Slots{}
			}
			if sum[a.DeviceId] == nil {
				sum[a.DeviceId] = resource.Slots{}
			}
			sum[a.DeviceId][a.Slot] += amount
		}
	}
	return sum
}

// Any is every launch of a kernel, for Drop.
func Any(kernel uuid.UUID) ID { return ID{kernel, math.MaxInt64} }

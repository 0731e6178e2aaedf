package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
)

// strays are containers that live on agents though no session counts on them any
// more: it was given up before its agent confirmed its end, or the agent came back
// with it. What they hold of devices is nobody's, and nobody can be given it before
// they have ended. The agents are the truth of it, and tell it to every new leader.
type strays struct {
	mu sync.Mutex
	m  map[uuid.UUID]map[uuid.UUID][]*agentpb.Allocation // agent, kernel
}

// set makes these all the strays of an agent.
func (s *strays) set(agent uuid.UUID, now map[uuid.UUID][]*agentpb.Allocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, agent)
	if len(now) > 0 {
		s.m[agent] = now
	}
}

// add says whether the kernel was none before.
func (s *strays) add(agent uuid.UUID, k *agentpb.KernelState, id uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.m[agent][id]
	if s.m[agent] == nil {
		s.m[agent] = map[uuid.UUID][]*agentpb.Allocation{}
	}
	s.m[agent][id] = k.Allocations
	return !was
}

// drop says that a kernel is no stray of an agent, and whether it was one.
func (s *strays) drop(agent, kernel uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.m[agent][kernel]
	if delete(s.m[agent], kernel); len(s.m[agent]) == 0 {
		delete(s.m, agent)
	}
	return was
}

// Strays sums what strays hold of the devices of an agent, by what it calls them.
func (s *Service) Strays(agent uuid.UUID) map[string]resource.Slots {
	s.strays.mu.Lock()
	defer s.strays.mu.Unlock()
	var sum map[string]resource.Slots
	for _, held := range s.strays.m[agent] {
		for _, a := range held {
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

// Hear takes the list of an agent's kernels before anything can be placed on it:
// those that should not be there keep what they hold.
func (s *Service) Hear(ctx context.Context, agent uuid.UUID, kernels []*agentpb.KernelState) error {
	lives := map[uuid.UUID]*agentpb.KernelState{}
	for _, k := range kernels {
		if id, err := uuid.Parse(k.KernelId); err == nil && k.Phase != agentpb.KernelState_EXITED {
			lives[id] = k
		}
	}
	found := map[uuid.UUID][]*agentpb.Allocation{}
	for id, k := range lives {
		found[id] = k.Allocations
	}
	if len(lives) > 0 {
		placed, err := s.Client.Kernel.Query().Where(kernel.IDIn(slices.Collect(maps.Keys(lives))...), kernel.AgentID(agent),
			kernel.TerminatedAtIsNil(), kernel.StatusIn(lifecycle.Occupying...)).All(ctx)
		if err != nil {
			return fmt.Errorf("compare kernels with an agent: %w", err)
		}
		for _, k := range placed {
			if lives[k.ID].LaunchEpoch == k.LaunchEpoch {
				delete(found, k.ID)
			}
		}
	}
	s.strays.set(agent, found)
	return nil
}

// abandon keeps what the session's containers hold that have not ended, before
// its allocations are freed; the function returned takes that back.
func (s step) abandon(ctx context.Context) (undo func()) {
	var left []*ent.Kernel
	for _, k := range s.sess.Edges.Kernels {
		if ob, ok := s.observed.current(k); ok && ob.Phase != agentpb.KernelState_EXITED {
			s.stray(ctx, ob, k.ID)
			left = append(left, k)
		}
	}
	return func() {
		for _, k := range left {
			s.strays.drop(*k.AgentID, k.ID)
		}
	}
}

// stray says that a container should not be where it is.
func (s *Service) stray(ctx context.Context, ob observation, kernel uuid.UUID) {
	if s.strays.add(ob.agent, ob.KernelState, kernel) {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: ob.agent})
	}
}

// gone says that a container has ended, and that what it held as a stray is free.
func (s *Service) gone(ctx context.Context, agent, kernel uuid.UUID) {
	if s.strays.drop(agent, kernel) {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agent})
	}
}

package session

import (
	"context"
	"fmt"
	"github.com/berthhq/berth/manager/store"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
)

// strays are launches that hold devices of agents though no session counts on them
// any more: one was given up before its agent confirmed its end, or the agent came
// back with it. What they hold is no one's, and no one can be given it before they
// have ended. The agents are the truth of it, and tell it to every new leader.
type strays struct {
	mu sync.Mutex
	m  map[uuid.UUID]map[launch]stray // by agent
}

// launch is one start of a kernel. An agent has one of a kernel at a time: a later
// one comes when the one before has ended.
type launch struct {
	kernel uuid.UUID
	epoch  int64
}

type stray struct {
	session uuid.UUID
	given   time.Time // up, by its session; zero where only its agent told of it
	holds   []*agentpb.Allocation
}

// unheard is for how long an agent's list may be older than the request that a
// launch begins: no call takes that long.
const unheard = 2 * callTimeout

// set makes these all the strays of an agent, and keeps those that were given up
// so lately that its list may not know of them.
func (s *strays) set(agent uuid.UUID, now map[launch]stray) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, old := range s.m[agent] {
		one, listed := now[l]
		switch {
		case listed:
			one.given = old.given
			now[l] = one
		case clock.Now().Sub(old.given) < unheard:
			now[l] = old
		}
	}
	delete(s.m, agent)
	if len(now) > 0 {
		s.m[agent] = now
	}
}

// add reports whether the launch was none before.
func (s *strays) add(agent uuid.UUID, l launch, one stray) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.m[agent][l]
	if s.m[agent] == nil {
		s.m[agent] = map[launch]stray{}
	}
	s.m[agent][l] = one
	return !was
}

// drop says that an agent has no launch of the kernel up to that one any more, and
// whether any was a stray.
func (s *strays) drop(agent uuid.UUID, last launch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.m[agent])
	maps.DeleteFunc(s.m[agent], func(l launch, _ stray) bool { return l.kernel == last.kernel && l.epoch <= last.epoch })
	left := len(s.m[agent])
	if left == 0 {
		delete(s.m, agent)
	}
	return left < before
}

// sessions lists who gave launches up.
func (s *strays) sessions() []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[uuid.UUID]bool{}
	for _, on := range s.m {
		for _, one := range on {
			if !one.given.IsZero() {
				found[one.session] = true
			}
		}
	}
	return store.IDs(found)
}

// of lists by agent the launches that a session gave up.
func (s *strays) of(session uuid.UUID) map[uuid.UUID][]launch {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[uuid.UUID][]launch{}
	for agent, on := range s.m {
		for l, one := range on {
			if one.session == session && !one.given.IsZero() {
				found[agent] = append(found[agent], l)
			}
		}
	}
	return found
}

// Strays sums what strays hold of the devices of an agent, by what it calls them.
func (s *Service) Strays(agent uuid.UUID) map[string]resource.Slots {
	s.strays.mu.Lock()
	defer s.strays.mu.Unlock()
	var sum map[string]resource.Slots
	for _, one := range s.strays.m[agent] {
		for _, a := range one.holds {
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
	found := map[launch]stray{}
	epochs := map[uuid.UUID]int64{}
	var lives []uuid.UUID
	for _, k := range kernels {
		if id, err := uuid.Parse(k.KernelId); err == nil && k.Phase != agentpb.KernelState_EXITED {
			session, _ := uuid.Parse(k.SessionId)
			found[launch{id, k.LaunchEpoch}] = stray{session: session, holds: k.Allocations}
			lives, epochs[id] = append(lives, id), k.LaunchEpoch
		}
	}
	if len(lives) > 0 {
		known, err := s.Client.Kernel.Query().Where(kernel.IDIn(lives...)).All(ctx)
		if err != nil {
			return fmt.Errorf("compare kernels with an agent: %w", err)
		}
		if err := s.hearUnknown(ctx, agent, epochs, known); err != nil {
			return err
		}
		for _, k := range known {
			if k.AgentID != nil && *k.AgentID == agent && k.TerminatedAt == nil && slices.Contains(lifecycle.Occupying, k.Status) {
				delete(found, launch{k.ID, k.LaunchEpoch})
			}
		}
	}
	s.strays.set(agent, found)
	return nil
}

// hearUnknown reports the launches of an agent that the database does not know.
func (s *Service) hearUnknown(ctx context.Context, agent uuid.UUID, epochs map[uuid.UUID]int64, known []*ent.Kernel) error {
	if s.Unknown == nil {
		return nil
	}
	var later []uuid.UUID
	missing := maps.Clone(epochs)
	for _, k := range known {
		delete(missing, k.ID)
		if k.LaunchEpoch < epochs[k.ID] {
			later = append(later, k.ID)
		}
	}
	if len(missing)+len(later) == 0 {
		return nil
	}
	name := agent.String() // its row is not committed when it is a new one
	if a, err := s.Client.Agent.Get(ctx, agent); err == nil {
		name = a.Name
	}
	return s.Unknown(ctx, name, store.IDs(missing), later)
}

// abandon keeps what the session's launches hold whose ends are not confirmed,
// seen or not, before its allocations are freed. Should they not be freed after
// all, endStrays takes that back.
func (s step) abandon(ctx context.Context) {
	if slices.Contains([]lifecycle.Status{lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared}, s.sess.Status) {
		return // its agents have not been asked for anything
	}
	for _, k := range s.sess.Edges.Kernels {
		if k.AgentID != nil && !s.exited(k) {
			s.stray(ctx, *k.AgentID, launch{k.ID, k.LaunchEpoch}, holds(k))
		}
	}
}

// stray says that the session gives up a launch.
func (s step) stray(ctx context.Context, agent uuid.UUID, l launch, holds []*agentpb.Allocation) {
	if s.strays.add(agent, l, stray{s.sess.ID, clock.Now(), holds}) {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agent})
	}
}

// gone says that an agent has no launch of a kernel up to that one any more: what
// it held as a stray is free.
func (s *Service) gone(ctx context.Context, agent uuid.UUID, last launch) {
	if s.strays.drop(agent, last) {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agent})
	}
}

// anyLaunch is every launch of a kernel, for gone.
func anyLaunch(kernel uuid.UUID) launch { return launch{kernel, math.MaxInt64} }

// heard keeps what an agent says of a kernel. A launch that is there has taken the
// place of those before it.
func (s *Service) heard(ctx context.Context, agent, kernel uuid.UUID, state *agentpb.KernelState) {
	s.observed.put(kernel, observation{agent, state})
	last := launch{kernel, state.LaunchEpoch}
	if state.Phase != agentpb.KernelState_EXITED {
		last.epoch--
	}
	s.gone(ctx, agent, last)
}

// endStrays ends containers that should not be: of an earlier launch, on another
// agent, or of a session that is over. What has ended is forgotten. An earlier
// launch on the same agent is that agent's to replace.
func (s step) endStrays(ctx context.Context) {
	for _, k := range s.sess.Edges.Kernels {
		for _, ob := range s.observed.all(k.ID) {
			// A launch that the database has not come to yet is left to an admin: the
			// database may be older than the launch.
			if s.placed(k.ID, ob.agent) != nil || ob.LaunchEpoch > k.LaunchEpoch {
				continue
			}
			if ob.Phase != agentpb.KernelState_EXITED {
				s.stray(ctx, ob.agent, launch{k.ID, ob.LaunchEpoch}, ob.Allocations)
			}
			s.observed.drop(k.ID, ob.agent)
		}
	}
	for agent, launches := range s.strays.of(s.sess.ID) {
		for _, l := range launches {
			k := s.placed(l.kernel, agent)
			switch {
			case k == nil:
				s.endStray(ctx, agent, l.kernel)
			case k.LaunchEpoch == l.epoch: // it was not given up after all
				s.gone(ctx, agent, l)
			}
		}
	}
}

// placed returns a kernel when it is the session's, and placed on the agent.
func (s step) placed(id, agent uuid.UUID) *ent.Kernel {
	for _, k := range s.sess.Edges.Kernels {
		if k.ID == id && k.AgentID != nil && *k.AgentID == agent && !s.sess.Status.Final() {
			return k
		}
	}
	return nil
}

// endStray asks for the end of a kernel on an agent, until the agent has answered
// that it has ended: the next pass asks again.
func (s step) endStray(ctx context.Context, on, kernel uuid.UUID) {
	a, err := s.Client.Agent.Get(ctx, on)
	if ent.IsNotFound(err) {
		s.gone(ctx, on, anyLaunch(kernel))
		return
	}
	var state *agentpb.KernelState
	if err == nil {
		state, err = s.terminateKernel(ctx, a.Name, kernel, time.Millisecond)
	}
	switch {
	case err == nil && state.Phase == agentpb.KernelState_EXITED:
		s.gone(ctx, on, anyLaunch(kernel))
	case err != nil && !unreachable(err):
		s.Logger.Warn("end stray container", "kernel", kernel, "agent", on, "error", err)
	}
}

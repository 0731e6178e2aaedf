package session

import (
	"context"
	"fmt"
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
	"github.com/berthhq/berth/manager/session/agentcall"
	"github.com/berthhq/berth/manager/store"
)

// Orphans are launches whose containers still use devices although no session refers to
// them: the session gave the launch up before its agent confirmed the container's exit, or
// the agent reconnected with it. Until the container has exited, no other session can use
// its devices. The agents report their containers to every new leader.
type Orphans struct {
	mu sync.Mutex
	m  map[uuid.UUID]map[launch]orphan // by agent
}

// NewOrphans returns an empty set, for a Service and the scheduler.
func NewOrphans() *Orphans { return &Orphans{m: map[uuid.UUID]map[launch]orphan{}} }

// launch is one start of a kernel. An agent has at most one container of a kernel: a later
// launch begins when the one before has ended.
type launch struct {
	kernel uuid.UUID
	epoch  int64
}

type orphan struct {
	session uuid.UUID
	givenUp time.Time // by its session; zero: only its agent has reported it
	holds   []*agentpb.Allocation
}

// reportDelay limits how much older than the request for a launch an agent's list can be. No call takes
// that long.
const reportDelay = 2 * agentcall.Timeout

// set replaces the orphans of an agent. It keeps those that were given up so recently that
// the agent's list may not contain them yet.
func (s *Orphans) set(agent uuid.UUID, now map[launch]orphan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, old := range s.m[agent] {
		one, listed := now[l]
		switch {
		case listed:
			one.givenUp = old.givenUp
			now[l] = one
		case clock.Now().Sub(old.givenUp) < reportDelay:
			now[l] = old
		}
	}
	delete(s.m, agent)
	if len(now) > 0 {
		s.m[agent] = now
	}
}

// add adds an orphan, and reports whether it is a new one.
func (s *Orphans) add(agent uuid.UUID, l launch, one orphan) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.m[agent][l]
	if s.m[agent] == nil {
		s.m[agent] = map[launch]orphan{}
	}
	s.m[agent][l] = one
	return !was
}

// drop removes the orphans of a kernel on an agent up to the last launch, as they have
// ended, and reports whether there were any.
func (s *Orphans) drop(agent uuid.UUID, last launch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.m[agent])
	maps.DeleteFunc(s.m[agent], func(l launch, _ orphan) bool { return l.kernel == last.kernel && l.epoch <= last.epoch })
	left := len(s.m[agent])
	if left == 0 {
		delete(s.m, agent)
	}
	return left < before
}

// sessions returns the sessions that gave launches up.
func (s *Orphans) sessions() []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[uuid.UUID]bool{}
	for _, on := range s.m {
		for _, one := range on {
			if !one.givenUp.IsZero() {
				found[one.session] = true
			}
		}
	}
	return store.IDs(found)
}

// of returns, by agent, the launches that a session gave up.
func (s *Orphans) of(session uuid.UUID) map[uuid.UUID][]launch {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[uuid.UUID][]launch{}
	for agent, on := range s.m {
		for l, one := range on {
			if one.session == session && !one.givenUp.IsZero() {
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

// Adopt takes the list of an agent's kernels before the scheduler can use the agent. Kernels that
// should not exist become orphans and keep their devices.
func (s *Service) Adopt(ctx context.Context, agent uuid.UUID, kernels []*agentpb.KernelState) error {
	found := map[launch]orphan{}
	epochs := map[uuid.UUID]int64{}
	var lives []uuid.UUID
	for _, k := range kernels {
		if id, err := uuid.Parse(k.KernelId); err == nil && k.Phase != agentpb.KernelState_EXITED {
			session, _ := uuid.Parse(k.SessionId)
			found[launch{id, k.LaunchEpoch}] = orphan{session: session, holds: k.Allocations}
			lives, epochs[id] = append(lives, id), k.LaunchEpoch
		}
	}
	if len(lives) > 0 {
		known, err := s.Client.Kernel.Query().Where(kernel.IDIn(lives...)).All(ctx)
		if err != nil {
			return fmt.Errorf("compare kernels with an agent: %w", err)
		}
		if err := s.adoptUnknown(ctx, agent, epochs, known); err != nil {
			return err
		}
		for _, k := range known {
			if k.AgentID != nil && *k.AgentID == agent && k.TerminatedAt == nil && slices.Contains(lifecycle.Occupying, k.Status) {
				delete(found, launch{k.ID, k.LaunchEpoch})
			}
		}
	}
	s.Orphans.set(agent, found)
	return nil
}

// adoptUnknown reports the launches of an agent that the database does not know.
func (s *Service) adoptUnknown(ctx context.Context, agent uuid.UUID, epochs map[uuid.UUID]int64, known []*ent.Kernel) error {
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

// abandon makes orphans of the session's launches whose exits are not confirmed, whether
// or not their starts were observed, before the allocations are freed. If the allocations
// are not freed after all, endOrphans removes the orphans again.
func (s step) abandon(ctx context.Context) {
	if slices.Contains([]lifecycle.Status{lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared}, s.sess.Status) {
		return // its agents have not received a request yet
	}
	for _, k := range s.sess.Edges.Kernels {
		if k.AgentID != nil && !s.exited(k) {
			s.orphan(ctx, *k.AgentID, launch{k.ID, k.LaunchEpoch}, holds(k))
		}
	}
}

// orphan records that the session gives up a launch.
func (s step) orphan(ctx context.Context, agent uuid.UUID, l launch, holds []*agentpb.Allocation) {
	if s.Orphans.add(agent, l, orphan{s.sess.ID, clock.Now(), holds}) {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agent})
	}
}

// gone records that an agent has no launch of a kernel up to the last one: the devices of
// its orphans are free.
func (s *Service) gone(ctx context.Context, agent uuid.UUID, last launch) {
	if s.Orphans.drop(agent, last) {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agent})
	}
}

// anyLaunch is every launch of a kernel, for gone.
func anyLaunch(kernel uuid.UUID) launch { return launch{kernel, math.MaxInt64} }

// report stores an agent's report of a kernel. A launch that exists has replaced those before it.
func (s *Service) report(ctx context.Context, agent, kernel uuid.UUID, state *agentpb.KernelState) {
	s.observed.put(kernel, observation{agent, state})
	last := launch{kernel, state.LaunchEpoch}
	if state.Phase != agentpb.KernelState_EXITED {
		last.epoch--
	}
	s.gone(ctx, agent, last)
}

// endOrphans stops containers that should not exist: of an earlier launch on another
// agent, or of a session that has ended. It removes those that have exited. An agent itself
// replaces an earlier launch.
func (s step) endOrphans(ctx context.Context) {
	for _, k := range s.sess.Edges.Kernels {
		for _, ob := range s.observed.all(k.ID) {
			// A launch that the database has not come to yet is left to an admin: the
			// database may be older than the launch.
			if s.placed(k.ID, ob.agent) != nil || ob.LaunchEpoch > k.LaunchEpoch {
				continue
			}
			if ob.Phase != agentpb.KernelState_EXITED {
				s.orphan(ctx, ob.agent, launch{k.ID, ob.LaunchEpoch}, ob.Allocations)
			}
			s.observed.drop(k.ID, ob.agent)
		}
	}
	for agent, launches := range s.Orphans.of(s.sess.ID) {
		for _, l := range launches {
			k := s.placed(l.kernel, agent)
			switch {
			case k == nil:
				s.endOrphan(ctx, agent, l.kernel)
			case k.LaunchEpoch == l.epoch: // it was not given up after all
				s.gone(ctx, agent, l)
			}
		}
	}
}

// placed returns a kernel if it is one of the live session's, placed on the agent.
func (s step) placed(id, agent uuid.UUID) *ent.Kernel {
	for _, k := range s.sess.Edges.Kernels {
		if k.ID == id && k.AgentID != nil && *k.AgentID == agent && !s.sess.Status.Final() {
			return k
		}
	}
	return nil
}

// endOrphan asks an agent to stop a kernel. Until the agent confirms its exit, the next
// pass asks again.
func (s step) endOrphan(ctx context.Context, on, kernel uuid.UUID) {
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
	case err != nil && !agentcall.Unreachable(err):
		s.Logger.Warn("end orphaned container", "kernel", kernel, "agent", on, "error", err)
	}
}

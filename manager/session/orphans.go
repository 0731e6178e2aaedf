package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/session/agentcall"
	"github.com/berthhq/berth/manager/session/launch"
	"github.com/berthhq/berth/manager/store"
)

// Adopt takes the list of an agent's kernels before the scheduler can use the agent. Kernels that
// should not exist become orphans and keep their devices.
func (s *Service) Adopt(ctx context.Context, agent uuid.UUID, kernels []*agentpb.KernelState) error {
	found := map[launch.ID]launch.Orphan{}
	epochs := map[uuid.UUID]int64{}
	var lives []uuid.UUID
	for _, k := range kernels {
		if id, err := uuid.Parse(k.KernelId); err == nil && k.Phase != agentpb.KernelState_EXITED {
			session, _ := uuid.Parse(k.SessionId)
			found[launch.ID{Kernel: id, Epoch: k.LaunchEpoch}] = launch.Orphan{Session: session, Holds: k.Allocations}
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
				delete(found, launch.ID{Kernel: k.ID, Epoch: k.LaunchEpoch})
			}
		}
	}
	s.Orphans.Set(agent, found)
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
			s.orphan(ctx, *k.AgentID, launch.ID{Kernel: k.ID, Epoch: k.LaunchEpoch}, holds(k))
		}
	}
}

// orphan records that the session gives up a launch.
func (s step) orphan(ctx context.Context, agent uuid.UUID, l launch.ID, holds []*agentpb.Allocation) {
	if s.Orphans.Add(agent, l, launch.Orphan{Session: s.sess.ID, GivenUp: clock.Now(), Holds: holds}) {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agent})
	}
}

// gone records that an agent has no launch of a kernel up to the last one: the devices of
// its orphans are free.
func (s *Service) gone(ctx context.Context, agent uuid.UUID, last launch.ID) {
	if s.Orphans.Drop(agent, last) {
		s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: agent})
	}
}

// report stores an agent's report of a kernel. A launch that exists has replaced those before it.
func (s *Service) report(ctx context.Context, agent, kernel uuid.UUID, state *agentpb.KernelState) {
	s.observed.Put(kernel, launch.Observation{Agent: agent, KernelState: state})
	last := launch.ID{Kernel: kernel, Epoch: state.LaunchEpoch}
	if state.Phase != agentpb.KernelState_EXITED {
		last.Epoch--
	}
	s.gone(ctx, agent, last)
}

// endOrphans stops containers that should not exist: of an earlier launch on another
// agent, or of a session that has ended. It removes those that have exited. An agent itself
// replaces an earlier launch.
func (s step) endOrphans(ctx context.Context) {
	for _, k := range s.sess.Edges.Kernels {
		for _, ob := range s.observed.All(k.ID) {
			// A launch that the database has not come to yet is left to an admin: the
			// database may be older than the launch.
			if s.placed(k.ID, ob.Agent) != nil || ob.LaunchEpoch > k.LaunchEpoch {
				continue
			}
			if ob.Phase != agentpb.KernelState_EXITED {
				s.orphan(ctx, ob.Agent, launch.ID{Kernel: k.ID, Epoch: ob.LaunchEpoch}, ob.Allocations)
			}
			s.observed.Drop(k.ID, ob.Agent)
		}
	}
	for agent, launches := range s.Orphans.Of(s.sess.ID) {
		for _, l := range launches {
			k := s.placed(l.Kernel, agent)
			switch {
			case k == nil:
				s.endOrphan(ctx, agent, l.Kernel)
			case k.LaunchEpoch == l.Epoch: // it was not given up after all
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
		s.gone(ctx, on, launch.Any(kernel))
		return
	}
	var state *agentpb.KernelState
	if err == nil {
		state, err = s.terminateKernel(ctx, a.Name, kernel, time.Millisecond)
	}
	switch {
	case err == nil && state.Phase == agentpb.KernelState_EXITED:
		s.gone(ctx, on, launch.Any(kernel))
	case err != nil && !agentcall.Unreachable(err):
		s.Logger.Warn("end orphaned container", "kernel", kernel, "agent", on, "error", err)
	}
}

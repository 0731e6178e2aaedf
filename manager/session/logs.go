package session

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session/logs"
)

// Logs opens the log of a kernel that the viewer can see. A kernel that has not been placed yet has
// none.
func (s *Service) Logs(ctx context.Context, id uuid.UUID, opt logs.Options) (*logs.Log, error) {
	if opt.Offset < 0 || opt.TailLines < 0 {
		return nil, problem.Invalid("offset", "must not be negative")
	}
	k, err := s.kernel(ctx, id)
	if err != nil {
		return nil, err
	}
	var gone error
	if k.TerminatedAt != nil {
		gone = s.logsRemoved(ctx)
	}
	if k.Forgotten {
		return nil, gone
	}
	rpc, err := s.rpc(ctx, k)
	if err != nil {
		return nil, err
	}
	return logs.Open(ctx, rpc, k.ID, opt, gone, s.meter.Logs)
}

// logsRemoved explains the missing log of an ended session.
func (s *Service) logsRemoved(ctx context.Context) error {
	if s.LogRetention != nil {
		before, err := s.LogRetention.LogsBefore(ctx)
		if err != nil {
			return err
		}
		if !before.IsZero() {
			days := int(clock.Now().Sub(before).Hours()+12) / 24
			return problem.Precondition("the logs of this session were removed: logs are kept for %d days after the end of a session", days)
		}
	}
	return problem.Precondition("the logs of this session were removed")
}

// Reach returns a kernel that the viewer can see, and its agent.
func (s *Service) Reach(ctx context.Context, id uuid.UUID) (*ent.Kernel, agentpb.AgentClient, error) {
	k, err := s.kernel(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	rpc, err := s.rpc(ctx, k)
	if err != nil {
		return nil, nil, err
	}
	return k, rpc, nil
}

func (s *Service) kernel(ctx context.Context, id uuid.UUID) (*ent.Kernel, error) {
	k, err := s.Client.Kernel.Query().Where(kernel.ID(id)).Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "kernel", "kernel")
	}
	return k, nil
}

func (s *Service) rpc(ctx context.Context, k *ent.Kernel) (agentpb.AgentClient, error) {
	name, err := s.AgentOf(ctx, k)
	if err != nil {
		return nil, err
	}
	rpc, err := s.Agents.RPC(name)
	if err != nil {
		return nil, problem.Unavailable("agent %s is not connected", name)
	}
	return rpc, nil
}

// AgentOf returns the name of the agent that a kernel in the viewer's sight is on.
func (s *Service) AgentOf(ctx context.Context, k *ent.Kernel) (string, error) {
	if k.AgentID == nil {
		return "", problem.Precondition("the kernel is %s and not on a machine yet", k.Status)
	}
	// A user who can see the session can read its log, even if they could not start another
	// session.
	a, err := s.Client.Agent.Get(viewer.SystemContext(ctx), *k.AgentID)
	if err != nil {
		return "", permit.Missing(err, "agent of the kernel", "kernel")
	}
	return a.Name, nil
}

package session

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
)

const (
	forgetEvery = time.Minute
	// forgetBatch bounds the requests of a look: an agent removes some files for each.
	forgetBatch = 500
)

// forgetOld has agents drop the records and logs of kernels that ended long ago,
// until ctx ends.
func (s *Service) forgetOld(ctx context.Context, epoch int64) {
	if s.LogRetention == nil {
		return
	}
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		if _, err := s.ForgetEnded(ctx, epoch); err != nil && ctx.Err() == nil {
			s.Logger.Error("remove logs of ended sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ForgetEnded asks the agents that are alive to drop a batch of kernels whose logs
// are older than they are kept, and returns how many they have dropped. It may be
// repeated: an agent that does not know a kernel has dropped it.
func (s *Service) ForgetEnded(ctx context.Context, epoch int64) (int, error) {
	before, err := s.LogRetention.LogsBefore(ctx)
	if err != nil || before.IsZero() {
		return 0, err
	}
	old, err := s.Client.Kernel.Query().
		Where(kernel.TerminatedAtLT(before), kernel.Forgotten(false), kernel.HasAgentWith(agent.StatusEQ(agent.StatusAlive))).
		WithAgent().Order(kernel.ByTerminatedAt()).Limit(forgetBatch).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("list old kernels: %w", err)
	}
	var done []uuid.UUID
	silent := map[uuid.UUID]bool{} // agents that did not answer
	for _, k := range old {
		if silent[*k.AgentID] {
			continue
		}
		if err := s.forget(ctx, epoch, k); err != nil {
			s.Logger.Debug("remove log of an ended session", "kernel", k.ID, "error", err)
			silent[*k.AgentID] = unreachable(err)
			continue
		}
		done = append(done, k.ID)
	}
	if len(done) == 0 {
		return 0, nil
	}
	if err := s.Client.Kernel.Update().Where(kernel.IDIn(done...)).SetForgotten(true).Exec(ctx); err != nil {
		return 0, fmt.Errorf("note %d kernels as forgotten: %w", len(done), err)
	}
	return len(done), s.LogRetention.LogsRemoved(ctx, len(done))
}

func (s *Service) forget(ctx context.Context, epoch int64, k *ent.Kernel) error {
	rpc, err := s.Agents.RPC(k.Edges.Agent.Name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = rpc.ForgetKernel(ctx, &agentpb.ForgetKernelRequest{Epoch: epoch, KernelId: k.ID.String()})
	return errgrpc.ToNative(err)
}

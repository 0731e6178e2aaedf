package logs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/manager/session/agentcall"
)

// Retention returns for how long the logs of ended sessions are kept.
type Retention interface {
	// LogsBefore is zero when they are kept forever.
	LogsBefore(ctx context.Context) (time.Time, error)
	LogsRemoved(ctx context.Context, n int) error
}

const (
	forgetEvery = time.Minute
	// forgetBatch limits the requests of one pass: an agent removes some files for each.
	forgetBatch = 500
)

// Agents reaches the worker machines.
type Agents interface {
	RPC(agent string) (agentpb.AgentClient, error)
}

// Cleaner removes the logs of sessions that ended before the retention.
type Cleaner struct {
	Client    *ent.Client
	Agents    Agents
	Retention Retention // nil: logs of ended sessions stay
	Logger    *slog.Logger
}

// Run makes agents drop the records and logs of kernels that ended long ago, until ctx ends.
func (s *Cleaner) Run(ctx context.Context, epoch int64) {
	if s.Retention == nil {
		return
	}
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		if _, err := s.forgetEnded(ctx, epoch); err != nil && ctx.Err() == nil {
			s.Logger.Error("remove logs of ended sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// forgetEnded asks the live agents to drop a batch of kernels whose logs are older than the
// retention, and returns how many they have dropped. It can be repeated: an agent that does not
// know a kernel has dropped it.
func (s *Cleaner) forgetEnded(ctx context.Context, epoch int64) (int, error) {
	before, err := s.Retention.LogsBefore(ctx)
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
			silent[*k.AgentID] = agentcall.Unreachable(err)
			continue
		}
		done = append(done, k.ID)
	}
	if len(done) == 0 {
		return 0, nil
	}
	if err := s.Client.Kernel.Update().Where(kernel.IDIn(done...)).SetForgotten(true).Exec(ctx); err != nil {
		return 0, fmt.Errorf("mark %d kernels as forgotten: %w", len(done), err)
	}
	return len(done), s.Retention.LogsRemoved(ctx, len(done))
}

func (s *Cleaner) forget(ctx context.Context, epoch int64, k *ent.Kernel) error {
	rpc, err := s.Agents.RPC(k.Edges.Agent.Name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, agentcall.Timeout)
	defer cancel()
	_, err = rpc.ForgetKernel(ctx, &agentpb.ForgetKernelRequest{Epoch: epoch, KernelId: k.ID.String()})
	return errgrpc.ToNative(err)
}

package session

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/session/agentcall"
	"github.com/berthhq/berth/manager/session/launch"
	"github.com/berthhq/berth/manager/store"
)

// ObserveAll takes the full list of an agent's kernels. A kernel that should run and is not on the
// list is gone, unless the request to start it may still be in transit.
func (s *Service) ObserveAll(ctx context.Context, agent uuid.UUID, kernels []*agentpb.KernelState) {
	known := map[uuid.UUID]bool{}
	over := s.over(ctx, kernels)
	for _, k := range kernels {
		id, err := uuid.Parse(k.KernelId)
		if err != nil {
			continue
		}
		known[id] = true
		if over[id] {
			s.gone(ctx, agent, launch.ID{Kernel: id, Epoch: k.LaunchEpoch})
			continue
		}
		s.Observe(ctx, agent, k)
	}
	ours, err := s.Client.Kernel.Query().
		Where(kernel.AgentID(agent), kernel.StatusIn(lifecycle.Running, lifecycle.Terminating)).WithAgent().All(ctx)
	if err != nil {
		s.Logger.Error("compare kernels with an agent", "agent", agent, "error", err)
		return
	}
	for _, k := range ours {
		if _, asked := s.requests.Load(k.ID); known[k.ID] || asked || !s.unknown(ctx, k) {
			continue
		}
		s.report(ctx, agent, k.ID, &agentpb.KernelState{
			KernelId: k.ID.String(), SessionId: k.SessionID.String(), LaunchEpoch: k.LaunchEpoch,
			Phase: agentpb.KernelState_EXITED, Reason: notFound, ExitCode: 255,
			Message: "its agent no longer knows the container",
		})
		s.queue.Add(k.SessionID)
	}
}

// over handles an agent's kernels that have exited and whose sessions have recorded this: an agent
// lists them until it is asked to forget them.
func (s *Service) over(ctx context.Context, kernels []*agentpb.KernelState) map[uuid.UUID]bool {
	over := map[uuid.UUID]bool{}
	var ids []uuid.UUID
	for _, k := range kernels {
		if id, err := uuid.Parse(k.KernelId); err == nil && k.Phase == agentpb.KernelState_EXITED {
			over[id] = true
			ids = append(ids, id)
		}
	}
	if len(over) == 0 {
		return over
	}
	live, err := s.Client.Kernel.Query().Where(kernel.TerminatedAtIsNil(),
		func(q *sql.Selector) { q.Where(store.In(q.C(kernel.FieldID), ids)) }).IDs(ctx)
	if err != nil {
		s.Logger.Error("compare ended kernels with an agent", "error", err)
		return nil
	}
	for _, id := range live {
		delete(over, id)
	}
	return over
}

// unknown asks the agent itself: a kernel that was created while the agent wrote its list is on the
// agent, but not on the list.
func (s *Service) unknown(ctx context.Context, k *ent.Kernel) bool {
	rpc, err := s.Agents.RPC(k.Edges.Agent.Name)
	if err != nil {
		return false // its next list decides
	}
	ctx, cancel := context.WithTimeout(ctx, agentcall.Timeout)
	defer cancel()
	_, err = rpc.GetKernel(ctx, &agentpb.GetKernelRequest{KernelId: k.ID.String()})
	return errdefs.IsNotFound(errgrpc.ToNative(err))
}

// Observe takes the state of one kernel.
func (s *Service) Observe(ctx context.Context, agent uuid.UUID, k *agentpb.KernelState) {
	id, err := uuid.Parse(k.KernelId)
	if err != nil {
		return
	}
	sess, err := uuid.Parse(k.SessionId)
	if err != nil {
		return
	}
	s.report(ctx, agent, id, k)
	if _, asked := s.requests.Load(id); asked && k.Phase == agentpb.KernelState_CREATING {
		return // the worker that starts the kernel gets this as the answer
	}
	s.queue.Add(sess)
}

// ObservePull shows the progress of a pull on the sessions that wait for it.
func (s *Service) ObservePull(ctx context.Context, agent uuid.UUID, p *agentpb.PullProgress) {
	waiting, err := s.Client.Session.Query().Where(
		session.TerminatedAtIsNil(), session.StatusEQ(lifecycle.Preparing),
		session.HasImageWith(image.Reference(p.Reference)),
		session.HasKernelsWith(kernel.AgentID(agent)),
	).All(ctx)
	if err != nil {
		s.Logger.Error("show progress of a pull", "image", p.Reference, "error", err)
		return
	}
	text := progress(p)
	for _, sess := range waiting {
		if sess.StatusMessage == text {
			continue
		}
		n, err := s.Client.Session.Update().
			Where(session.ID(sess.ID), session.StatusEQ(lifecycle.Preparing)).
			SetStatusMessage(text).AddVersion(1).Save(ctx)
		if err == nil && n > 0 {
			s.changed(ctx, sess.ID)
		}
	}
}

func progress(p *agentpb.PullProgress) string {
	if p.Phase != "downloading" || p.TotalBytes <= 0 {
		return "image: " + p.Phase
	}
	return fmt.Sprintf("image: downloading %d %%", p.DoneBytes*100/p.TotalBytes)
}

// saveStats stores a kernel's last samples on its row.
func (s *Service) saveStats(ctx context.Context, ids []uuid.UUID) {
	latest, err := s.Samples.Latest(ctx, ids)
	if err != nil {
		s.Logger.Warn("read last samples", "error", err)
		return
	}
	for id, st := range latest {
		if err := s.Client.Kernel.UpdateOneID(id).SetLastStats(&st).Exec(ctx); err != nil {
			s.Logger.Warn("save last samples", "kernel", id, "error", err)
		}
	}
}

func millis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

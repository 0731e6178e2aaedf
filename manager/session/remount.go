package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/store"
)

// settling has the agents make mounts as their rows are. Each session is seen to on
// its own: an agent that does not answer holds up no one else.
type settling struct {
	s       *Service
	epoch   int64
	running sync.WaitGroup

	mu   sync.Mutex
	busy map[uuid.UUID]bool
}

// begin sees to all sessions that have something to settle, and reports whether any
// has.
func (p *settling) begin(ctx context.Context) (open bool, err error) {
	all, err := p.s.Client.Session.Query().
		Where(session.TerminatedAtIsNil(), session.StatusNEQ(lifecycle.Pending), session.HasMountsWith(sessionmount.Settled(false))).
		WithMounts(func(q *ent.SessionMountQuery) { q.Where(sessionmount.Settled(false)) }).
		WithKernels(func(q *ent.KernelQuery) { q.WithAgent() }).All(ctx)
	if err != nil {
		return false, err
	}
	for _, sess := range all {
		// Before these states agents have not been asked for anything.
		if !slices.Contains([]lifecycle.Status{lifecycle.Creating, lifecycle.Running, lifecycle.Terminating}, sess.Status) || !p.take(sess.ID) {
			continue
		}
		p.running.Go(func() {
			defer p.leave(sess.ID)
			if err := p.settle(ctx, sess); err != nil && ctx.Err() == nil && !isAborted(err) {
				if unreachable(err) {
					p.s.Logger.Debug("mounts are not changed yet", "session", sess.ID, "error", err)
					return
				}
				p.s.Logger.Warn("change mounts", "session", sess.ID, "error", err)
				select { // what is no matter of time is not asked for every second
				case <-ctx.Done():
				case <-time.After(passEvery):
				}
			}
		})
	}
	return len(all) > 0, nil
}

func (p *settling) take(id uuid.UUID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[id] {
		return false
	}
	p.busy[id] = true
	return true
}

func (p *settling) leave(id uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, id)
}

// settle asks the agents of a session's kernels. Confirmed it is once they run: one
// that is being made may be made of what was read before.
func (p *settling) settle(ctx context.Context, sess *ent.Session) error {
	var updates []*agentpb.MountUpdate
	for _, m := range sess.Edges.Mounts {
		updates = append(updates, &agentpb.MountUpdate{Target: m.Target, ReadOnly: m.ReadOnly, Gone: m.RevokedAt != nil})
	}
	failed := make([]error, len(sess.Edges.Kernels))
	var all sync.WaitGroup
	for i, k := range sess.Edges.Kernels {
		if k.Edges.Agent == nil {
			continue
		}
		all.Go(func() { failed[i] = p.ask(ctx, k, updates) })
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	if sess.Status == lifecycle.Creating {
		return nil
	}
	return p.confirmed(ctx, sess.Edges.Mounts)
}

func (p *settling) ask(ctx context.Context, k *ent.Kernel, updates []*agentpb.MountUpdate) error {
	rpc, err := p.s.Agents.RPC(k.Edges.Agent.Name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = rpc.UpdateMounts(ctx, &agentpb.UpdateMountsRequest{
		Epoch: p.epoch, KernelId: k.ID.String(), LaunchEpoch: k.LaunchEpoch, Mounts: updates,
	})
	if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
		return nil // what is not there has nothing mounted
	}
	if err != nil {
		return fmt.Errorf("agent %s: %w", k.Edges.Agent.Name, err)
	}
	return nil
}

// confirmed notes that the agents have mounts as these rows are, unless the rows have
// changed meanwhile.
func (p *settling) confirmed(ctx context.Context, mounts []*ent.SessionMount) error {
	return store.InTx(ctx, p.s.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, p.epoch); err != nil {
			return err
		}
		for _, m := range mounts {
			u := tx.SessionMount.Update().Where(sessionmount.ID(m.ID), sessionmount.ReadOnly(m.ReadOnly)).SetSettled(true)
			if m.RevokedAt == nil {
				u.Where(sessionmount.RevokedAtIsNil())
			}
			if err := u.Exec(ctx); err != nil {
				return fmt.Errorf("note mount %s as settled: %w", m.Target, err)
			}
		}
		return nil
	})
}

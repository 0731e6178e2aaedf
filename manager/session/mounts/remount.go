package mounts

import (
	"context"
	"errors"
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
	"github.com/berthhq/berth/manager/session/agentcall"
	"github.com/berthhq/berth/manager/store"
)

// settling makes the agents change mounts as the rows say. Each session is handled on its own: an
// agent that does not answer delays only its own sessions.
type settling struct {
	s       *Keeper
	epoch   int64
	running sync.WaitGroup

	mu   sync.Mutex
	busy map[uuid.UUID]bool
}

// begin handles all sessions with unconfirmed mounts, and reports whether there were any.
func (p *settling) begin(ctx context.Context) (open bool, err error) {
	all, err := p.s.Client.Session.Query().
		Where(session.TerminatedAtIsNil(), session.StatusNEQ(lifecycle.Pending), session.HasMountsWith(sessionmount.Settled(false))).
		WithMounts(func(q *ent.SessionMountQuery) { q.Where(sessionmount.Settled(false)) }).
		WithKernels(func(q *ent.KernelQuery) { q.WithAgent() }).All(ctx)
	if err != nil {
		return false, err
	}
	for _, sess := range all {
		// Before these states, agents have not received a request.
		if !slices.Contains([]lifecycle.Status{lifecycle.Creating, lifecycle.Running, lifecycle.Terminating}, sess.Status) || !p.take(sess.ID) {
			continue
		}
		p.running.Go(func() {
			defer p.leave(sess.ID)
			if err := p.settle(ctx, sess); err != nil && ctx.Err() == nil && !errors.Is(err, errdefs.ErrAborted) {
				if agentcall.Unreachable(err) {
					p.s.Logger.Debug("mounts have not been changed yet", "session", sess.ID, "error", err)
					return
				}
				p.s.Logger.Warn("change mounts", "session", sess.ID, "error", err)
				select { // an error that time does not solve is not retried every second
				case <-ctx.Done():
				case <-time.After(errorPause):
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

// settle asks the agents of a session's kernels. Mounts are confirmed only while the kernels run: a
// kernel that is being created may use the rows from before.
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
	ctx, cancel := context.WithTimeout(ctx, agentcall.Timeout)
	defer cancel()
	_, err = rpc.UpdateMounts(ctx, &agentpb.UpdateMountsRequest{
		Epoch: p.epoch, KernelId: k.ID.String(), LaunchEpoch: k.LaunchEpoch, Mounts: updates,
	})
	if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
		return nil // a container that does not exist has no mounts
	}
	if err != nil {
		return fmt.Errorf("agent %s: %w", k.Edges.Agent.Name, err)
	}
	return nil
}

// confirmed records that the agents have the mounts of these rows, unless the rows have changed in
// the meantime.
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
				return fmt.Errorf("mark mount %s as confirmed: %w", m.Target, err)
			}
		}
		return nil
	})
}

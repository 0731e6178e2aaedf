package occupancy

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/store"
)

// endOrphan ends a container that nothing refers to, unless something refers to it now.
func (st *state) endOrphan(on, id uuid.UUID) repair {
	launch := st.live[on][id].LaunchEpoch
	return func(ctx context.Context, epoch int64) error {
		wanted, err := st.Client.Kernel.Query().Where(kernel.ID(id), kernel.AgentID(on), kernel.LaunchEpochGTE(launch), kernel.TerminatedAtIsNil()).Exist(ctx)
		if err != nil || wanted {
			return err
		}
		rpc, err := st.Agents.RPC(st.agents[on].Name)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		_, err = rpc.TerminateKernel(ctx, &agentpb.TerminateKernelRequest{
			Epoch: epoch, KernelId: id.String(), GraceMs: time.Millisecond.Milliseconds(), Reason: "nothing in the database refers to it",
		})
		return errgrpc.ToNative(err)
	}
}

// reportMissing passes the report of the agent to the sessions, which end by their own rules.
func (st *state) reportMissing(on uuid.UUID) repair {
	kernels := st.reports[on].Kernels
	return func(ctx context.Context, _ int64) error {
		st.Sessions.ObserveAll(ctx, on, kernels)
		return nil
	}
}

// freeLeaked frees the allocation of a kernel that is not placed there, after its agent, if
// reachable, has confirmed that the kernel does not run.
func (st *state) freeLeaked(a *ent.Allocation) repair {
	if st.live[a.AgentID][a.KernelID] != nil {
		return nil // the orphan must end first
	}
	return func(ctx context.Context, epoch int64) error {
		err := st.fenced(ctx, epoch, func(tx *ent.Tx) error {
			placed, err := tx.Kernel.Query().Where(kernel.ID(a.KernelID), kernel.AgentID(a.AgentID), kernel.TerminatedAtIsNil()).ForShare().Exist(ctx)
			if err != nil || placed {
				return err
			}
			return tx.Allocation.Update().Where(allocation.ID(a.ID), allocation.FreedAtIsNil()).SetFreedAt(clock.Now()).Exec(ctx)
		})
		if err == nil {
			st.Bus.Publish(ctx, event.Event{Topic: event.Pending})
		}
		return err
	}
}

// allocateAgain restores a freed allocation of a running kernel if no other session has got the
// device since.
func (st *state) allocateAgain(k *ent.Kernel, name, slot string) repair {
	return func(ctx context.Context, epoch int64) error {
		return st.fenced(ctx, epoch, func(tx *ent.Tx) error {
			running, err := tx.Session.Query().Where(session.ID(k.SessionID), session.StatusEQ(lifecycle.Running),
				session.HasKernelsWith(kernel.ID(k.ID), kernel.AgentID(*k.AgentID), kernel.LaunchEpoch(k.LaunchEpoch))).Exist(ctx)
			if err != nil || !running {
				return err
			}
			d, err := tx.Device.Query().Where(device.AgentID(*k.AgentID), device.DeviceID(name)).ForUpdate().Only(ctx)
			if err != nil {
				return fmt.Errorf("read device %s: %w", name, err)
			}
			last, err := tx.Allocation.Query().Where(allocation.KernelID(k.ID), allocation.DeviceID(d.ID), allocation.Slot(slot), allocation.FreedAtNotNil()).
				Order(ent.Desc(allocation.FieldCreatedAt)).First(ctx)
			if err != nil {
				return fmt.Errorf("read freed allocations of device %s: %w", name, err)
			}
			others, err := tx.Allocation.Query().Where(allocation.DeviceID(d.ID), allocation.FreedAtIsNil()).All(ctx)
			if err != nil {
				return fmt.Errorf("read allocations of device %s: %w", name, err)
			}
			held := resource.Slots{slot: last.Amount}
			for _, a := range others {
				held[a.Slot] += a.Amount
			}
			if why := st.rules.Against(held, d.Capacity); why != "" {
				return fmt.Errorf("device %s was allocated to another session, and would now have %s allocated: %w", name, why, errdefs.ErrResourceExhausted)
			}
			return tx.Allocation.UpdateOne(last).ClearFreedAt().Exec(ctx)
		})
	}
}

// fenced runs f in a transaction that fails if the leader was replaced.
func (st *state) fenced(ctx context.Context, epoch int64, f func(*ent.Tx) error) error {
	return store.InTx(ctx, st.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, epoch); err != nil {
			return err
		}
		return f(tx)
	})
}

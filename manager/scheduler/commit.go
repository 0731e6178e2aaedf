package scheduler

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/scheduler/plan"
	msession "github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/stats"
)

// commit places a batch in one transaction. It is refused as a whole when the
// epoch is no longer ours; a session that was cancelled meanwhile is left out,
// and so is one that limits as they are now do not admit any more. Only the
// holder of the epoch adds to what is used, so nobody passes a limit meanwhile.
func (s *Scheduler) commit(ctx context.Context, epoch int64, batch []plan.Decision) error {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := msession.Fence(ctx, tx, epoch); err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(batch))
	for i, d := range batch {
		ids[i] = d.SessionID
	}
	still, err := tx.Session.Query().Where(session.IDIn(ids...), session.StatusEQ(lifecycle.Pending)).ForUpdate().All(ctx)
	if err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
	byID := map[uuid.UUID]*ent.Session{}
	for _, w := range still {
		byID[w.ID] = w
	}
	limits, err := s.readLimits(ctx, tx)
	if err != nil {
		return err
	}
	ledger := plan.NewLedger(limits)
	touched := map[uuid.UUID]bool{}
	for _, d := range batch {
		w := byID[d.SessionID]
		r := s.requests[d.SessionID]
		if w == nil || len(ledger.Reached(r)) > 0 {
			continue
		}
		ledger.Charge(r)
		if err := msession.Place(ctx, tx, w, placements(d, touched)); err != nil {
			return err
		}
	}
	if err := verify(ctx, tx, touched); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for id := range byID {
		s.bus.Publish(ctx, event.Event{Topic: event.Session, ID: id})
	}
	for _, d := range batch {
		for _, a := range d.Assignments {
			s.bus.Publish(ctx, event.Event{Topic: event.Agent, ID: a.AgentID})
		}
	}
	return nil
}

func placements(d plan.Decision, touched map[uuid.UUID]bool) []msession.Placement {
	var out []msession.Placement
	for _, a := range d.Assignments {
		p := msession.Placement{Kernel: a.KernelID, Agent: a.AgentID}
		for _, h := range a.Allocs {
			p.Holds = append(p.Holds, msession.Hold{Device: h.DeviceID, Slot: h.Slot, Amount: h.Amount})
			touched[h.DeviceID] = true
		}
		out = append(out, p)
	}
	return out
}

// verify compares the sums on every device of the batch with its capacity, in
// the transaction: whatever the planner believed, no device is given twice.
func verify(ctx context.Context, tx *ent.Tx, touched map[uuid.UUID]bool) error {
	var ids []uuid.UUID
	for id := range touched {
		ids = append(ids, id)
	}
	devices, err := tx.Device.Query().Where(device.IDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read devices: %w", err)
	}
	used, err := stats.Occupied(ctx, tx.Client(), allocation.FieldDeviceID, ids)
	if err != nil {
		return err
	}
	for _, d := range devices {
		for slot, amount := range used[d.ID] {
			if amount > d.Capacity[slot] {
				return fmt.Errorf("device %s would hold %d of %d %s: %w", d.DeviceID, amount, d.Capacity[slot], slot, errdefs.ErrAborted)
			}
		}
	}
	return nil
}

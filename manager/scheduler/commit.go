package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager/scheduler/plan"
	msession "github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/stats"
	"github.com/berthhq/berth/manager/store"
)

// commit places a batch in one transaction. It is refused as a whole when the
// epoch is no longer ours; a session that was cancelled meanwhile is left out,
// and so is one that limits as they are now do not admit any more. Only the
// holder of the epoch adds to what is used, so nobody passes a limit meanwhile.
func (s *Scheduler) commit(ctx context.Context, epoch int64, batch []plan.Decision) error {
	var places []msession.Place
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		places, err = s.place(ctx, tx, epoch, batch)
		return err
	})
	if err == nil {
		s.tell(ctx, places)
	}
	return err
}

// place writes what of a batch may still start, and returns it.
func (s *Scheduler) place(ctx context.Context, tx *ent.Tx, epoch int64, batch []plan.Decision) ([]msession.Place, error) {
	if err := msession.Fence(ctx, tx, epoch); err != nil {
		return nil, err
	}
	ids := make([]uuid.UUID, len(batch))
	for i, d := range batch {
		ids[i] = d.SessionID
	}
	still, err := msession.LockPending(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	byID := map[uuid.UUID]*ent.Session{}
	for _, w := range still {
		byID[w.ID] = w
	}
	limits, err := s.readLimits(ctx, tx)
	if err != nil {
		return nil, err
	}
	ledger := plan.NewLedger(limits)
	touched := map[uuid.UUID]bool{}
	var places []msession.Place
	for _, d := range batch {
		w := byID[d.SessionID]
		r := s.requests[d.SessionID]
		if w == nil || changed(w, r) || len(ledger.Reached(r)) > 0 {
			continue
		}
		ledger.Charge(r)
		places = append(places, msession.Place{Session: w, Kernels: placements(d, touched)})
	}
	if err := msession.Schedule(ctx, tx, places); err != nil {
		return nil, err
	}
	return places, verify(ctx, tx, touched)
}

// changed tells whether a session asks for something else than was decided on.
func changed(w *ent.Session, r *plan.Request) bool {
	return w.ResourceGroupID != r.Group || w.StrictAgents != r.Strict ||
		len(r.Kernels) == 1 && !maps.Equal(w.Slots, r.Kernels[0].Slots)
}

// tell publishes what was placed: every session, and every agent once.
func (s *Scheduler) tell(ctx context.Context, places []msession.Place) {
	agents := map[uuid.UUID]bool{}
	for _, p := range places {
		s.bus.Publish(ctx, event.Event{Topic: event.Session, ID: p.Session.ID})
		for _, k := range p.Kernels {
			agents[k.Agent] = true
		}
	}
	for id := range agents {
		s.bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id})
	}
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
	ids := slices.Collect(maps.Keys(touched))
	q := tx.Device.Query().Where(func(s *sql.Selector) { s.Where(store.In(s.C(device.FieldID), ids)) })
	q.Select(device.FieldID, device.FieldDeviceID, device.FieldCapacity)
	devices, err := q.All(ctx)
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

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

// commit places a batch in one transaction. The whole batch is refused if the epoch is
// no longer current. A session is left out if it was cancelled in the meantime, if the
// current limits do not allow it, or if its agents no longer accept sessions. Only the
// leader of the current epoch adds allocations, so no limit can be exceeded.
func (t *term) commit(ctx context.Context, batch []plan.Decision) error {
	var places []move.Place
	err := store.InTx(ctx, t.client, func(tx *ent.Tx) (err error) {
		places, err = t.place(ctx, tx, batch)
		return err
	})
	if err != nil {
		return err
	}
	done := map[uuid.UUID]bool{}
	now := time.Now().UTC()
	for _, p := range places {
		var allocs []alloc
		for _, k := range p.Kernels {
			for _, a := range k.Allocations {
				allocs = append(allocs, alloc{k.Agent, a.Device, a.Slot, a.Amount, now})
			}
		}
		done[p.Session.ID] = true
		t.model.placed(p.Session.ID, allocs)
	}
	if t.repairing {
		maps.Copy(t.touched, done)
	}
	for _, d := range batch {
		if !done[d.SessionID] {
			t.sessions[d.SessionID] = true
			t.model.leftOut(d)
		}
	}
	t.publish(ctx, places)
	return nil
}

// place writes the placements of a batch that are still allowed, and returns them.
func (t *term) place(ctx context.Context, tx *ent.Tx, batch []plan.Decision) ([]move.Place, error) {
	if err := leader.Fence(ctx, tx, t.epoch); err != nil {
		return nil, err
	}
	ids := make([]uuid.UUID, len(batch))
	for i, d := range batch {
		ids[i] = d.SessionID
	}
	still, err := move.LockPending(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	byID := map[uuid.UUID]*ent.Session{}
	for _, w := range still {
		byID[w.ID] = w
	}
	targets, err := t.lockTargets(ctx, tx, batch)
	if err != nil {
		return nil, err
	}
	ledger, err := t.ledger(ctx, tx, batch)
	if err != nil {
		return nil, err
	}
	touched := map[uuid.UUID]bool{}
	var places []move.Place
	for _, d := range batch {
		w := byID[d.SessionID]
		r := &t.model.live[d.SessionID].request
		shut := slices.ContainsFunc(d.Assignments, func(a plan.Assignment) bool { return targets.group[a.AgentID] != r.Group })
		if w == nil || changed(w, r) || shut || len(ledger.Reached(r)) > 0 {
			for _, a := range d.Assignments {
				t.agents[a.AgentID] = t.agents[a.AgentID] || shut
			}
			continue
		}
		network, ok, err := targets.network(ctx, tx, d)
		if err != nil {
			return nil, err
		}
		if !ok {
			t.settings = true // they include the number of free networks
			for _, a := range d.Assignments {
				t.agents[a.AgentID] = true
			}
			continue
		}
		ledger.Charge(r)
		places = append(places, move.Place{Session: w, Kernels: placements(d, touched), Network: network})
	}
	if len(places) == 0 {
		return nil, nil
	}
	if err := move.Schedule(ctx, tx, places); err != nil {
		return nil, err
	}
	return places, verify(ctx, tx, store.IDs(touched), t.model.snap.SlotTypes)
}

// changed reports whether the request of a session differs from the one of the decision.
func changed(w *ent.Session, r *plan.Request) bool {
	return w.ResourceGroupID != r.Group || w.StrictAgents != r.Strict ||
		len(r.Kernels) == 1 && !maps.Equal(w.Slots, r.Kernels[0].Slots)
}

// ledger returns the limits that apply to the sessions of a batch, with their usage.
func (t *term) ledger(ctx context.Context, tx *ent.Tx, batch []plan.Decision) (plan.Ledger, error) {
	limits, err := t.policies.All(ctx, tx)
	if err != nil {
		return nil, err
	}
	counted := map[uuid.UUID]bool{}
	for _, d := range batch {
		r := &t.model.live[d.SessionID].request
		counted[r.Domain], counted[r.Project], counted[r.Owner] = true, true, true
	}
	limits = slices.DeleteFunc(limits, func(l policy.Limit) bool { return !counted[l.ScopeID] && !counted[l.Person] })
	usage, err := t.policies.Held(ctx, tx, limits)
	if err != nil {
		return nil, err
	}
	list := make([]plan.Limit, len(limits))
	for i := range limits {
		used, err := usage.Of(&limits[i])
		if err != nil {
			return nil, err
		}
		list[i] = planLimit(&limits[i], used)
	}
	return plan.NewLedger(list), nil
}

// publish publishes an event for every placed session, and one for every agent.
func (t *term) publish(ctx context.Context, places []move.Place) {
	agents := map[uuid.UUID]bool{}
	for _, p := range places {
		on := make([]string, len(p.Kernels))
		for i, k := range p.Kernels {
			agents[k.Agent], on[i] = true, t.model.nameOf(k.Agent)
		}
		t.meter.placed.Inc()
		t.log.InfoContext(requestid.With(ctx, t.bus.Request(p.Session.ID)), "session placed", "session", p.Session.ID, "agents", on)
		t.bus.Publish(ctx, event.Event{Topic: event.Session, ID: p.Session.ID, By: by})
	}
	for id := range agents {
		t.bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id, By: by})
	}
}

func placements(d plan.Decision, touched map[uuid.UUID]bool) []move.Placement {
	var out []move.Placement
	for _, a := range d.Assignments {
		p := move.Placement{Kernel: a.KernelID, Agent: a.AgentID}
		for _, h := range a.Allocs {
			p.Allocations = append(p.Allocations, move.Allocation{Device: h.DeviceID, Slot: h.Slot, Amount: h.Amount})
			touched[h.DeviceID] = true
		}
		out = append(out, p)
	}
	return out
}

// verify compares the sums on every device of the batch with its capacity, in the
// transaction, so that a mistake of the planner cannot allocate a device twice.
func verify(ctx context.Context, tx *ent.Tx, devices []uuid.UUID, types []plan.SlotType) error {
	ids := make([]string, len(devices))
	for i, id := range devices {
		ids[i] = id.String()
	}
	rows, err := tx.QueryContext(ctx, `SELECT d.id, d.device_id, d.capacity::text, a.slot, sum(a.amount)::bigint FROM allocations a JOIN devices d ON d.id = a.device_id
WHERE a.device_id = ANY ($1::text[]::uuid[]) AND a.freed_at IS NULL GROUP BY d.id, a.slot`, ids)
	if err != nil {
		return fmt.Errorf("sum the allocations of devices: %w", err)
	}
	defer rows.Close()
	known := map[string]resource.Slots{} // devices are alike
	used, capacity, name := map[string]resource.Slots{}, map[string]resource.Slots{}, map[string]string{}
	for rows.Next() {
		var id, device, text, slot string
		var amount int64
		if err := rows.Scan(&id, &device, &text, &slot, &amount); err != nil {
			return fmt.Errorf("sum the allocations of devices: %w", err)
		}
		if known[text] == nil {
			var c resource.Slots
			if err := c.UnmarshalJSON([]byte(text)); err != nil {
				return fmt.Errorf("capacity of device %s: %w", device, err)
			}
			known[text] = c
		}
		if used[id] == nil {
			used[id], capacity[id], name[id] = resource.Slots{}, known[text], device
		}
		used[id][slot] = amount
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("sum the allocations of devices: %w", err)
	}
	var rules resource.Rules
	for _, t := range types {
		rules.Add(t.Name, t.Unified, t.ExclusiveWith)
	}
	for id, slots := range used {
		if why := rules.Against(slots, capacity[id]); why != "" {
			return fmt.Errorf("device %s would have %s allocated: %w", name[id], why, errdefs.ErrAborted)
		}
	}
	return nil
}

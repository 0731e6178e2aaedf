package scheduler

import (
	"context"
	"fmt"
	"reflect"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/scheduler/plan"
	msession "github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

// makeRoom ends sessions so that waiting ones can start, and drops the promises of waiting
// sessions that no longer need them.
func (t *term) makeRoom(ctx context.Context, decisions []plan.Decision) error {
	for _, d := range decisions {
		switch {
		case len(d.Victims) > 0:
			if err := t.preempt(ctx, d); err != nil {
				return fmt.Errorf("make room for session %s: %w", d.SessionID, err)
			}
		case !d.Placed():
			t.model.promise(d.SessionID, d.Waiting.Room)
		}
	}
	return nil
}

// preempt ends sessions for a waiting one. The same transaction stores the promise of
// their devices, so that the next leader keeps it. Nothing happens if the session no
// longer waits, if one of the sessions can no longer be ended, or if preemption has been
// turned off in its group.
func (t *term) preempt(ctx context.Context, d plan.Decision) error {
	var victims []*ent.Session
	err := store.InTx(ctx, t.client, func(tx *ent.Tx) (err error) {
		victims, err = t.evict(ctx, tx, d)
		return err
	})
	if err != nil {
		return err
	}
	if len(victims) == 0 {
		t.model.change.Review = true
		t.sessions[d.SessionID] = true
		return nil
	}
	t.model.promise(d.SessionID, d.Waiting.Room)
	ids := map[uuid.UUID]bool{d.SessionID: true}
	for _, v := range victims {
		ids[v.ID] = true
	}
	t.dirty(t.sessions, ids)
	for id := range ids {
		t.bus.Publish(ctx, event.Event{Topic: event.Session, ID: id, By: by})
	}
	return nil
}

// evict is the transaction of preempt. It returns the sessions that it ended.
func (t *term) evict(ctx context.Context, tx *ent.Tx, d plan.Decision) ([]*ent.Session, error) {
	if err := leader.Fence(ctx, tx, t.epoch); err != nil {
		return nil, err
	}
	other, err := tx.Session.Query().Where(session.ID(d.SessionID), session.StatusEQ(lifecycle.Pending)).ForUpdate().Only(ctx)
	if ent.IsNotFound(err) || err == nil && changed(other, &t.model.live[d.SessionID].request) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock session %s: %w", d.SessionID, err)
	}
	g, err := tx.ResourceGroup.Get(ctx, other.ResourceGroupID)
	if err != nil {
		return nil, fmt.Errorf("read resource group: %w", err)
	}
	if g.Preemption == resourcegroup.PreemptionOff {
		return nil, nil
	}
	victims, err := tx.Session.Query().Where(session.IDIn(d.Victims...), session.StatusEQ(lifecycle.Running),
		session.Preemptible(true), session.PriorityLT(other.Priority)).Order(session.ByID()).ForUpdate().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock sessions to end: %w", err)
	}
	if len(victims) < len(d.Victims) { // it would not be enough, or need not be
		return nil, nil
	}
	if err := msession.Preempt(ctx, tx, other, victims, g.Preemption == resourcegroup.PreemptionReschedule); err != nil {
		return nil, err
	}
	return victims, move.Explain(ctx, tx, []move.Wait{{Session: other.ID, Attempt: other.Attempt, Why: d.Waiting}})
}

// promise records the devices that are promised to a waiting session; nil for none. The
// planner decided it, so it is not added to change.
func (m *model) promise(id uuid.UUID, room *report.Room) {
	i, waits := m.pending[id]
	if !waits {
		return
	}
	m.live[id].request.Room, m.snap.Pending[i].Room = room, room
}

// sameRequest reports whether two requests differ in nothing but the promised devices,
// for which a row can be older than the model.
func sameRequest(a, b plan.Request) bool {
	a.Room, b.Room = nil, nil
	return reflect.DeepEqual(a, b)
}

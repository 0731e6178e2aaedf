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
	"github.com/berthhq/berth/manager/store"
)

// makeRoom ends sessions for those that wait for that, and forgets what room was
// made for others that do not get it any more.
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

// preempt ends sessions for one that waits, in one transaction with the promise
// that this gets their room, so that anyone who leads next keeps it. It is left out
// when the session does not wait any more, when one of those that it needs may
// not be ended any more, or when its group has ceased to do so.
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

// evict writes what preempt says, and returns whom it ended.
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
	return victims, msession.Explain(ctx, tx, []msession.Wait{{Session: other.ID, Attempt: other.Attempt, Why: d.Waiting}})
}

// promise notes what room is made for a session that waits; nil is none. The
// planner knows, as it decided that.
func (m *model) promise(id uuid.UUID, room *report.Room) {
	i, waits := m.pending[id]
	if !waits {
		return
	}
	m.live[id].request.Room, m.snap.Pending[i].Room = room, room
}

// sameRequest compares all but the room that is made, of which a row may be
// behind what the leader knows.
func sameRequest(a, b plan.Request) bool {
	a.Room, b.Room = nil, nil
	return reflect.DeepEqual(a, b)
}

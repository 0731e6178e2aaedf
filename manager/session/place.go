package session

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
)

// Placement is where one kernel goes and what it holds there.
type Placement struct {
	Kernel uuid.UUID
	Agent  uuid.UUID
	Holds  []Hold
}

// Hold is an amount of a slot on one device.
type Hold struct {
	Device uuid.UUID
	Slot   string
	Amount int64
}

// Place moves a waiting session to scheduled and gives its kernels what they
// hold, in the caller's transaction.
func Place(ctx context.Context, tx *ent.Tx, s *ent.Session, where []Placement) error {
	var rows []*ent.AllocationCreate
	for _, p := range where {
		err := tx.Kernel.Update().Where(kernel.ID(p.Kernel)).SetAgentID(p.Agent).AddLaunchEpoch(1).Exec(ctx)
		if err != nil {
			return fmt.Errorf("place kernel %s: %w", p.Kernel, err)
		}
		for _, h := range p.Holds {
			rows = append(rows, tx.Allocation.Create().SetSessionID(s.ID).SetKernelID(p.Kernel).SetAgentID(p.Agent).
				SetDeviceID(h.Device).SetSlot(h.Slot).SetAmount(h.Amount).
				SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID))
		}
	}
	if err := tx.Allocation.CreateBulk(rows...).Exec(ctx); err != nil {
		return fmt.Errorf("allocate devices of session %s: %w", s.ID, err)
	}
	return Move(ctx, tx, s, move{to: lifecycle.Scheduled, result: sessionevent.ResultSuccess, phase: "schedule", message: "placed"})
}

// Explain stores why a session waits, in the caller's transaction. The first
// reason, and every change of its kind, becomes an entry of the history.
func Explain(ctx context.Context, tx *ent.Tx, s *ent.Session, why *report.Pending) error {
	n, err := tx.Session.Update().Where(session.ID(s.ID), session.StatusEQ(lifecycle.Pending)).
		SetPending(why).SetStatusMessage(why.Summary).AddVersion(1).Save(ctx)
	if err != nil {
		return fmt.Errorf("explain session %s: %w", s.ID, err)
	}
	if n == 0 {
		return nil // it moved on
	}
	if s.Pending != nil && s.Pending.Summary == why.Summary {
		return nil
	}
	return record(ctx, tx, entry{session: s.ID, phase: "schedule", from: &s.Status, to: lifecycle.Pending,
		result: sessionevent.ResultRetry, attempt: s.Attempt, code: "waiting", message: why.Summary})
}

package session

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
)

// Preempt ends sessions, in the caller's transaction, to make room for one that
// waits. When they are to start again they wait for their turn again, and have not
// failed. What they are told names the other one only if it is their owner's.
func Preempt(ctx context.Context, tx *ent.Tx, other *ent.Session, victims []*ent.Session, anew bool) error {
	if err := lockRows(ctx, tx, victims...); err != nil {
		return err
	}
	for _, v := range victims {
		text := fmt.Sprintf("it made room for a session of priority %d, its own being %d", other.Priority, v.Priority)
		if v.OwnerID == other.OwnerID {
			text = fmt.Sprintf("it made room for your session %s of priority %d, its own being %d", other.Name, other.Priority, v.Priority)
		}
		if anew {
			text += "; it starts anew when its turn comes"
		}
		if err := Move(ctx, tx, displacing(session.TerminationReasonPreempted, anew, text), v); err != nil {
			return err
		}
	}
	return nil
}

package session

import (
	"context"
	"fmt"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/store"
)

const (
	// cleanUpTime is for how long after the end of its process a session waits
	// for its machine to be clean: many sessions that end at once keep a small
	// machine busy for a minute.
	cleanUpTime = 3 * time.Minute
	// cleanUpPause is the time between two looks at a machine that cleans up.
	cleanUpPause = 5 * time.Second
)

// cleaningUp reports whether all that keeps a terminating session from its end is
// that agents, which have just answered, remove mounts, networks and containers of
// processes that ended lately.
func (s step) cleaningUp() bool {
	waiting := false
	for _, k := range s.sess.Edges.Kernels {
		if k.Edges.Agent == nil || s.exited(k) {
			continue
		}
		ob, ok := s.observed.current(k)
		if !ok || ob.ExitedUnixMs == 0 || clock.Now().Sub(millis(ob.ExitedUnixMs)) > cleanUpTime {
			return false
		}
		if _, err := s.Agents.RPC(k.Edges.Agent.Name); err != nil {
			return false
		}
		waiting = true
	}
	return waiting
}

// extend moves the deadline of a terminating session a little. The message stays:
// it says why the session ends.
func (s step) extend(ctx context.Context) error {
	until := clock.Now().Add(cleanUpPause)
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, s.epoch); err != nil {
			return err
		}
		return tx.Session.Update().Where(session.ID(s.sess.ID), session.StatusEQ(lifecycle.Terminating)).
			SetDeadlineAt(until).AddVersion(1).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("wait for the clean-up after session %s: %w", s.sess.ID, err)
	}
	s.sess.DeadlineAt = &until
	return nil
}

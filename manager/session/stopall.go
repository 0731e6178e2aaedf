package session

import (
	"context"
	"fmt"
	"time"

	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/viewer"
)

// StopAll asks for the end of every session that runs or starts, and waits
// until they have ended or ctx has. Waiting ones keep their place.
func (s *Service) StopAll(ctx context.Context) error {
	ctx = viewer.SystemContext(ctx)
	live := s.Client.Session.Query().Where(session.TerminatedAtIsNil(), session.StatusIn(lifecycle.Occupying...))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := live.Clone().All(ctx)
		if err != nil || len(all) == 0 {
			return err
		}
		for _, sess := range all {
			if sess.Status == lifecycle.Terminating {
				continue
			}
			reason := session.TerminationReasonShutdown
			err := s.end(ctx, sess, move{to: lifecycle.Terminating, result: sessionevent.ResultInfo, phase: "terminate",
				code: string(reason), message: "the platform was stopped", reason: &reason})
			if err != nil && !isAborted(err) {
				return fmt.Errorf("end session %s: %w", sess.Name, err)
			}
			s.changed(ctx, sess.ID)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

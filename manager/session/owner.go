package session

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/viewer"
)

// EndOwned asks for the end of all live sessions of a user, those that wait
// included, and tells how many have not ended yet. Asking again changes nothing.
func (s *Service) EndOwned(ctx context.Context, owner uuid.UUID, why string) (left int, err error) {
	ctx = viewer.SystemContext(ctx)
	live := s.Client.Session.Query().Where(session.OwnerID(owner), session.TerminatedAtIsNil())
	all, err := live.Clone().All(ctx)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	reason := session.TerminationReasonUserRequested
	for _, sess := range all {
		if sess.Status == lifecycle.Terminating {
			continue
		}
		to := lifecycle.Terminating
		if sess.Status == lifecycle.Pending {
			to = lifecycle.Cancelled
		}
		err := s.end(ctx, sess, move{to: to, result: sessionevent.ResultInfo, phase: "terminate",
			code: "owner_purged", message: why, reason: &reason})
		if err != nil && !isAborted(err) {
			return 0, fmt.Errorf("end session %s: %w", sess.Name, err)
		}
		s.changed(ctx, sess.ID)
	}
	return live.Count(ctx)
}

package session

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessiongroup"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

const (
	minLifetime = 60              // seconds
	maxLifetime = 365 * 24 * 3600 // seconds
)

// terms are on what terms a session runs.
type terms struct {
	lifetime    *int // seconds
	preemptible bool
	together    *uuid.UUID // its session group
}

// checkTerms looks at how long a session may run, for whom it makes room, and
// with which sessions it belongs: a session group of its owner, in its project.
func (s *Service) checkTerms(ctx context.Context, _ *viewer.Viewer, in CreateSessionInput, w *wish) error {
	w.lifetime = in.Lifetime
	if l := in.Lifetime; l != nil && (*l < minLifetime || *l > maxLifetime) {
		return problem.Invalid("lifetime", "must be %d to %d seconds", minLifetime, maxLifetime).
			WithLimit(fmt.Sprintf("%d..%d", minLifetime, maxLifetime))
	}
	w.preemptible = in.Preemptible != nil && *in.Preemptible
	if in.SessionGroup == nil {
		return nil
	}
	g, err := s.Client.SessionGroup.Query().Where(sessiongroup.ID(*in.SessionGroup)).Only(ctx)
	if err != nil {
		return permit.Missing(err, "session group", "sessionGroup")
	}
	if g.OwnerID != w.owner || g.ProjectID != w.project {
		return problem.Invalid("sessionGroup", "%s is not one of your session groups in this project", g.Name)
	}
	w.together = &g.ID
	return nil
}

// holdSessionGroup keeps the session group from being deleted until the session
// is there.
func holdSessionGroup(ctx context.Context, tx *ent.Tx, w *wish) error {
	if w.together == nil {
		return nil
	}
	held, err := tx.SessionGroup.Query().Where(sessiongroup.ID(*w.together)).ForShare().Exist(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("hold session group: %w", err)
	}
	if !held {
		return problem.NotFound("session group").WithField("sessionGroup")
	}
	return nil
}

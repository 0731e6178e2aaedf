package session

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/budget"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session/move"
)

// Budgets refuses sessions that would exceed a budget.
type Budgets interface {
	Binding(ctx context.Context, at policy.Place) ([]uuid.UUID, error)
	Admit(ctx context.Context, tx *ent.Tx, budgets []uuid.UUID, ask budget.Ask) error
}

// afford refuses a session that would exceed a budget.
func (s *Service) afford(ctx context.Context, tx *ent.Tx, spec *sessionSpec) error {
	if len(spec.budgets) == 0 {
		return nil
	}
	return s.Budgets.Admit(ctx, tx, spec.budgets, budget.Ask{
		Place:    policy.Place{Domain: spec.domain, Project: spec.project, User: spec.owner, Group: spec.group},
		Slots:    spec.total(),
		Sessions: spec.member.count(), Lifetime: spec.lifetime, Member: spec.belongs, Stored: spec.stored,
	})
}

// EndOverBudget ends the running sessions of a user, project or domain that cost something, and
// returns their number.
func (s *Service) EndOverBudget(ctx context.Context, epoch int64, scope policy.Scope, one uuid.UUID, costs func(group uuid.UUID, slots resource.Slots) bool, why string) (int, error) {
	of := session.OwnerID(one)
	switch scope {
	case policy.ScopeProject:
		of = session.ProjectID(one)
	case policy.ScopeDomain:
		of = session.DomainID(one)
	}
	running, err := s.Client.Session.Query().Where(of, session.TerminatedAtIsNil(), session.StatusEQ(lifecycle.Running)).Order(session.ByID()).All(viewer.SystemContext(ctx))
	if err != nil {
		return 0, fmt.Errorf("list running sessions: %w", err)
	}
	n, reason := 0, session.TerminationReasonBudget
	for _, sess := range running {
		if !costs(sess.ResourceGroupID, sess.Slots) {
			continue
		}
		err := s.apply(ctx, epoch, sess, move.Move{To: lifecycle.Terminating, Phase: "run", Result: sessionevent.ResultInfo,
			Code: "budget", Reason: &reason, Message: why})
		if err != nil && !isAborted(err) {
			return n, fmt.Errorf("end session %s: %w", sess.ID, err)
		}
		if err == nil {
			n++
		}
	}
	return n, nil
}

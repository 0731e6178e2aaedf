package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// ShareHolders lists who has, had or waits for something of groups, by the group,
// as far as the viewer may know.
func (s *Scheduler) ShareHolders(ctx context.Context, groups []uuid.UUID) (map[uuid.UUID][]*plan.Holder, error) {
	sys := viewer.SystemContext(ctx)
	apart := &Scheduler{client: s.client, policies: s.policies, log: s.log, past: newLately[[]plan.Usage]()}
	snap, err := apart.sharesOf(sys, groups)
	if err != nil {
		return nil, err
	}
	v := viewer.From(ctx)
	of := make(map[uuid.UUID][]*plan.Holder, len(groups))
	for i := range snap.Groups {
		g := snap.Groups[i]
		whole := v.SeesAll() && v.Within == uuid.Nil || v.May(access.Update, access.ResourceGroup, access.Object{ID: g.ID})
		for _, h := range plan.Holders(snap, g) {
			if whole || knows(v, h) {
				of[g.ID] = append(of[g.ID], &h)
			}
		}
	}
	return of, nil
}

// knows reports whether what a holder uses is the viewer's to know: their own, that
// of what they are in, and what they may see the sessions of.
func knows(v *viewer.Viewer, h plan.Holder) bool {
	if v.May(access.Read, access.Session, access.Object{Domain: h.Domain, Project: h.Project, Owner: h.Owner}) {
		return true
	}
	switch h.Scope {
	case plan.ScopeDomain:
		return v.Domain == h.Domain && v.Within == uuid.Nil
	case plan.ScopeProject:
		return v.MemberOf(h.Project) && (v.Within == uuid.Nil || v.Within == h.Project)
	}
	return false
}

// sharesOf reads what the orders of groups go by, as though each looked at it.
func (s *Scheduler) sharesOf(ctx context.Context, groups []uuid.UUID) (*plan.Snapshot, error) {
	snap := &plan.Snapshot{Now: time.Now().UTC()}
	rows, err := s.client.ResourceGroup.Query().Where(resourcegroup.IDIn(groups...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read resource groups: %w", err)
	}
	for _, g := range rows {
		order := plan.OrderFairShare
		if g.Order == resourcegroup.OrderDrf {
			order = plan.OrderDRF
		}
		snap.Groups = append(snap.Groups, plan.Group{ID: g.ID, Order: order, Sharing: sharing(g)})
	}
	if err := s.readAgents(ctx, snap); err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	if err := s.readShares(ctx, snap); err != nil {
		return nil, fmt.Errorf("read shares: %w", err)
	}
	waiting, err := s.client.Session.Query().Where(session.TerminatedAtIsNil(), session.StatusEQ(lifecycle.Pending), session.ResourceGroupIDIn(groups...)).
		Select(session.FieldDomainID, session.FieldProjectID, session.FieldOwnerID, session.FieldResourceGroupID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who waits: %w", err)
	}
	for _, w := range waiting {
		snap.Pending = append(snap.Pending, plan.Request{Domain: w.DomainID, Project: w.ProjectID, Owner: w.OwnerID, Group: w.ResourceGroupID})
	}
	return snap, nil
}

package scheduler

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// Holder is the domain, project and user that an allocation is charged to, and its agent.
type Holder struct {
	AgentID   uuid.UUID `json:"agent_id"`
	DomainID  uuid.UUID `json:"domain_id"`
	ProjectID uuid.UUID `json:"project_id"`
	OwnerID   uuid.UUID `json:"owner_id"`
}

// readShares reads the shares, holdings and past usage that the orders of the groups need;
// fifo and lifo need none. Holdings are read each time, the past at most once per
// cacheAge.
func (s *Scheduler) readShares(ctx context.Context, snap *plan.Snapshot) error {
	var shared, fair bool
	var lookback time.Duration
	for i := range snap.Groups {
		g := &snap.Groups[i]
		shared = shared || g.Order == plan.OrderDRF || g.Order == plan.OrderFairShare
		if g.Order == plan.OrderFairShare {
			fair, lookback = true, max(lookback, g.Sharing.Lookback)
		}
	}
	if !shared {
		return nil
	}
	if err := s.readWeights(ctx, snap); err != nil {
		return err
	}
	home := map[uuid.UUID]uuid.UUID{}
	for _, a := range snap.Agents {
		home[a.ID] = a.Group
	}
	if err := s.readHoldings(ctx, snap, home); err != nil || !fair {
		return err
	}
	usages, err := s.usage.get(ctx, snap.Now, func() ([]plan.Usage, error) { return s.readPast(ctx, snap.Now, lookback, home) })
	if err != nil {
		return err
	}
	for i := range snap.Groups {
		if g := &snap.Groups[i]; g.Order == plan.OrderFairShare {
			snap.Shares = append(snap.Shares, plan.Decay(usages, g, plan.Capacity(snap, g.ID), snap.Now)...)
		}
	}
	return nil
}

// sharing returns how a group counts past usage.
func sharing(g *ent.ResourceGroup) plan.Sharing {
	return plan.Sharing{HalfLife: time.Duration(g.HalfLife) * time.Second, Lookback: time.Duration(g.Lookback) * time.Second}
}

// readWeights reads the weights of shares. A weight for a group takes precedence over a
// weight for all groups.
func (s *Scheduler) readWeights(ctx context.Context, snap *plan.Snapshot) error {
	rows, err := s.client.ShareWeight.Query().All(ctx)
	if err != nil {
		return fmt.Errorf("read weights: %w", err)
	}
	for i := range snap.Groups {
		own := map[plan.Share]float64{}
		for _, everywhere := range []bool{true, false} {
			for _, w := range rows {
				if (w.ResourceGroupID == nil) == everywhere && (everywhere || *w.ResourceGroupID == snap.Groups[i].ID) {
					own[weighed(w, snap.Groups[i].ID)] = w.Weight
				}
			}
		}
		for share, weight := range own {
			share.Weight = weight
			snap.Shares = append(snap.Shares, share)
		}
	}
	return nil
}

// weighed returns the share that a row sets the weight of.
func weighed(w *ent.ShareWeight, group uuid.UUID) plan.Share {
	share := plan.Share{Group: group}
	switch {
	case w.DomainID != nil:
		share.Scope, share.ID = plan.ScopeDomain, *w.DomainID
	case w.ProjectID != nil:
		share.Scope, share.ID = plan.ScopeProject, *w.ProjectID
	default:
		share.Scope, share.ID = plan.ScopeUser, *w.UserID
	}
	if w.WithinProjectID != nil {
		share.Within = *w.WithinProjectID
	}
	return share
}

// readHoldings sums the live allocations.
func (s *Scheduler) readHoldings(ctx context.Context, snap *plan.Snapshot, home map[uuid.UUID]uuid.UUID) error {
	var rows []struct {
		Holder
		Slot   string
		Amount int64
	}
	err := s.client.Allocation.Query().Where(allocation.FreedAtIsNil()).
		Modify(byHolder(func(s *sql.Selector) []string {
			return []string{sql.As("SUM("+s.C(allocation.FieldAmount)+")::bigint", "amount")}
		})).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("sum live allocations: %w", err)
	}
	for _, r := range rows {
		snap.Holdings = append(snap.Holdings, plan.Holding{
			Group: home[r.AgentID], Domain: r.DomainID, Project: r.ProjectID, Owner: r.OwnerID, Slots: resource.Slots{r.Slot: r.Amount},
		})
	}
	return nil
}

// readPast sums the usage over the lookback. Allocations that began on the same day and
// ended on the same day are summed in one row, as if they had been evenly spread.
func (s *Scheduler) readPast(ctx context.Context, now time.Time, lookback time.Duration, home map[uuid.UUID]uuid.UUID) ([]plan.Usage, error) {
	var rows []struct {
		Holder
		Slot     string
		From, To time.Time
		Seconds  float64
	}
	err := s.client.Allocation.Query().
		Where(allocation.Or(allocation.FreedAtIsNil(), allocation.FreedAtGT(now.Add(-lookback)))).
		Modify(byHolder(func(s *sql.Selector) []string {
			// The manager's clock set the time of their beginning; the database's clock may differ.
			begin := s.C(allocation.FieldCreatedAt)
			end := fmt.Sprintf("COALESCE(%s, '%s'::timestamptz)", s.C(allocation.FieldFreedAt), now.UTC().Format(time.RFC3339Nano))
			s.GroupBy("date_trunc('day', "+begin+")", "date_trunc('day', "+end+")")
			return []string{
				sql.As("MIN("+begin+")", "from"), sql.As("MAX("+end+")", "to"),
				sql.As("SUM("+s.C(allocation.FieldAmount)+" * EXTRACT(EPOCH FROM "+end+" - "+begin+"))::float8", "seconds"),
			}
		})).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("sum past allocations: %w", err)
	}
	var usages []plan.Usage
	for _, r := range rows {
		usages = append(usages, plan.Usage{
			Group: home[r.AgentID], Domain: r.DomainID, Project: r.ProjectID, Owner: r.OwnerID,
			From: r.From, To: r.To, Seconds: map[string]float64{r.Slot: r.Seconds},
		})
	}
	return usages, nil
}

// byHolder groups allocations by Holder and slot.
func byHolder(sums func(s *sql.Selector) []string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		keys := []string{
			s.C(allocation.FieldAgentID), s.C(allocation.FieldDomainID), s.C(allocation.FieldProjectID),
			s.C(allocation.FieldOwnerID), s.C(allocation.FieldSlot),
		}
		s.GroupBy(keys...)
		s.Select(append(keys, sums(s)...)...)
	}
}

// ShareHolders lists, by group, the domains, projects and users with current, past or
// pending use that the viewer is allowed to see.
func (s *Scheduler) ShareHolders(ctx context.Context, groups []uuid.UUID) (map[uuid.UUID][]*plan.Holder, error) {
	sys := viewer.SystemContext(ctx)
	apart := &Scheduler{client: s.client, policies: s.policies, log: s.log, usage: newCached[[]plan.Usage]()}
	snap, err := apart.sharesOf(sys, groups)
	if err != nil {
		return nil, err
	}
	v := viewer.From(ctx)
	of := make(map[uuid.UUID][]*plan.Holder, len(groups))
	for i := range snap.Groups {
		g := snap.Groups[i]
		sees := v.SeesAll() && v.Within == uuid.Nil || v.May(access.Update, access.ResourceGroup, access.Object{ID: g.ID})
		for _, h := range plan.Holders(snap, g) {
			if sees || knows(v, h) {
				of[g.ID] = append(of[g.ID], &h)
			}
		}
	}
	return of, nil
}

// knows reports whether the viewer can see the usage of a holder: their own, that of their domain
// and projects, and that of holders whose sessions they can see.
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

// sharesOf reads the shares of groups, also of groups whose order does not use them.
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
		return nil, fmt.Errorf("read pending sessions: %w", err)
	}
	for _, w := range waiting {
		snap.Pending = append(snap.Pending, plan.Request{Domain: w.DomainID, Project: w.ProjectID, Owner: w.OwnerID, Group: w.ResourceGroupID})
	}
	return snap, nil
}

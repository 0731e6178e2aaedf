package scheduler

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// Holder is whom an allocation is charged to, and where.
type Holder struct {
	AgentID   uuid.UUID `json:"agent_id"`
	DomainID  uuid.UUID `json:"domain_id"`
	ProjectID uuid.UUID `json:"project_id"`
	OwnerID   uuid.UUID `json:"owner_id"`
}

// readShares reads what the orders of the groups go by; for fifo and lifo that
// is nothing. What is held now is read each time, the past once in a while.
func (s *Scheduler) readShares(ctx context.Context, snap *plan.Snapshot) error {
	var shared, fair bool
	for _, g := range snap.Groups {
		shared = shared || g.Order == plan.OrderDRF || g.Order == plan.OrderFairShare
		fair = fair || g.Order == plan.OrderFairShare
	}
	if !shared {
		return nil
	}
	home := map[uuid.UUID]uuid.UUID{}
	for _, a := range snap.Agents {
		home[a.ID] = a.Group
	}
	if err := s.readHoldings(ctx, snap, home); err != nil || !fair {
		return err
	}
	usages, err := s.past.get(snap.Now, func() ([]plan.Usage, error) { return s.readPast(ctx, snap.Now, home) })
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

// readHoldings sums what live sessions have.
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
		return fmt.Errorf("sum what is held: %w", err)
	}
	for _, r := range rows {
		snap.Holdings = append(snap.Holdings, plan.Holding{
			Group: home[r.AgentID], Domain: r.DomainID, Project: r.ProjectID, Owner: r.OwnerID, Slots: resource.Slots{r.Slot: r.Amount},
		})
	}
	return nil
}

// readPast sums what was taken over the lookback. Allocations that began on one day
// and ended on one day count together, as if they had been even in between.
func (s *Scheduler) readPast(ctx context.Context, now time.Time, home map[uuid.UUID]uuid.UUID) ([]plan.Usage, error) {
	var rows []struct {
		Holder
		Slot     string
		From, To time.Time
		Seconds  float64
	}
	err := s.client.Allocation.Query().
		Where(allocation.Or(allocation.FreedAtIsNil(), allocation.FreedAtGT(now.Add(-plan.DefaultLookback)))).
		Modify(byHolder(func(s *sql.Selector) []string {
			begin, end := s.C(allocation.FieldCreatedAt), "COALESCE("+s.C(allocation.FieldFreedAt)+", now())"
			s.GroupBy("date_trunc('day', "+begin+")", "date_trunc('day', "+end+")")
			return []string{
				sql.As("MIN("+begin+")", "from"), sql.As("MAX("+end+")", "to"),
				sql.As("SUM("+s.C(allocation.FieldAmount)+" * EXTRACT(EPOCH FROM "+end+" - "+begin+"))::float8", "seconds"),
			}
		})).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("sum what was taken: %w", err)
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

// byHolder groups allocations by whom they are charged to, where, and slot.
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

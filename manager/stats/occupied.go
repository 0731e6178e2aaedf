package stats

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/store"
)

// Occupied sums live allocations that the viewer can see, grouped by one of the columns of
// allocation that name an agent, device, owner, project or domain.
func Occupied(ctx context.Context, client *ent.Client, column string, ids []uuid.UUID) (map[uuid.UUID]resource.Slots, error) {
	var rows []struct {
		Key    uuid.UUID `json:"key"`
		Slot   string
		Amount int64
	}
	err := client.Allocation.Query().
		Where(allocation.FreedAtIsNil(), func(s *sql.Selector) { s.Where(store.In(s.C(column), ids)) }).
		Modify(func(s *sql.Selector) {
			s.Select(sql.As(s.C(column), "key"), s.C(allocation.FieldSlot), sql.As("SUM("+s.C(allocation.FieldAmount)+")::bigint", "amount")).
				GroupBy(s.C(column), s.C(allocation.FieldSlot))
		}).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("sum allocations by %s: %w", column, err)
	}
	sums := map[uuid.UUID]resource.Slots{}
	for _, r := range rows {
		if sums[r.Key] == nil {
			sums[r.Key] = resource.Slots{}
		}
		sums[r.Key][r.Slot] = r.Amount
	}
	for _, id := range ids {
		if sums[id] == nil {
			sums[id] = resource.Slots{}
		}
	}
	return sums, nil
}

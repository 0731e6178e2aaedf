package manager

import (
	"context"

	"github.com/berthhq/berth/manager/budget"
)

// BudgetReached reports a limit of a budget that was reached, as the leader does.
func BudgetReached(ctx context.Context, m *Manager, r budget.Reached) {
	budgetNews{m}.BudgetReached(ctx, r)
}

package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/budget"
	"github.com/berthhq/berth/manager/price"
)

type budgetResolver struct{ *Resolver }

// Budgets lists the budgets that the viewer can see.
func (r queryResolver) Budgets(ctx context.Context, domain, project, user *uuid.UUID, mine bool) ([]*ent.Budget, error) {
	return r.Resolver.Budgets.List(ctx, domain, project, user, mine)
}

func (r mutationResolver) SetBudget(ctx context.Context, input budget.SetBudgetInput) (*budget.BudgetPayload, error) {
	return r.Budgets.SetBudget(ctx, input)
}

func (r mutationResolver) DeleteBudget(ctx context.Context, input budget.DeleteBudgetInput) (*budget.DeleteBudgetPayload, error) {
	return r.Budgets.DeleteBudget(ctx, input)
}

func (budgetResolver) Soft(_ context.Context, b *ent.Budget) (*string, error) {
	return amount(b.SoftMicros), nil
}

func (budgetResolver) Hard(_ context.Context, b *ent.Budget) (*string, error) {
	return amount(b.HardMicros), nil
}

func (r budgetResolver) Status(ctx context.Context, b *ent.Budget) (*budget.BudgetStatus, error) {
	return r.Budgets.Status(ctx, b)
}

// amount returns a decimal, or nil.
func amount(micros *int64) *string {
	if micros == nil {
		return nil
	}
	text := price.Format(*micros)
	return &text
}

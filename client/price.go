package client

import "context"

// Currency returns the currency of prices and budgets.
func (c *Client) Currency(ctx context.Context) (string, error) {
	out, err := queryCurrency(ctx, c)
	return out.Server.Currency, err
}

// Prices lists the prices that apply now or later or, with the history, all; and their currency.
func (c *Client) Prices(ctx context.Context, history bool) ([]Price, string, error) {
	out, err := queryPrices(ctx, c, history)
	return out.Prices, out.Server.Currency, err
}

// SetPrice adds a price from now or from a later time on.
func (c *Client) SetPrice(ctx context.Context, in SetPriceInput) (*Price, error) {
	out, err := setPrice(ctx, c, in)
	return &out.Payload.Price, err
}

// DeletePrice deletes a price that has not begun, by its id.
func (c *Client) DeletePrice(ctx context.Context, id string) error {
	_, err := deletePrice(ctx, c, DeletePriceInput{ID: id})
	return err
}

// BudgetFilter selects budgets; zero values select all. Domain, Project and User are ids.
type BudgetFilter struct {
	Domain, Project, User string
	Mine                  bool // only those that apply to the viewer's own sessions
}

// Budgets lists the budgets that the viewer can see, and their currency.
func (c *Client) Budgets(ctx context.Context, f BudgetFilter) ([]Budget, string, error) {
	out, err := queryBudgets(ctx, c, f.Domain, f.Project, f.User, f.Mine)
	return out.Budgets, out.Server.Currency, err
}

// SetBudget creates a budget or, with an id, changes one.
func (c *Client) SetBudget(ctx context.Context, in SetBudgetInput) (*Budget, error) {
	out, err := setBudget(ctx, c, in)
	return &out.Payload.Budget, err
}

// DeleteBudget deletes a budget by its id.
func (c *Client) DeleteBudget(ctx context.Context, id string) error {
	_, err := deleteBudget(ctx, c, DeleteBudgetInput{ID: id})
	return err
}

package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entprice "github.com/berthhq/berth/ent/price"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/manager/price"
	"github.com/berthhq/berth/manager/scheduler"
)

type priceResolver struct{ *Resolver }

// Prices lists the prices that the viewer can see.
func (r queryResolver) Prices(ctx context.Context, history bool) ([]*ent.Price, error) {
	return r.Resolver.Prices.List(ctx, history)
}

func (r mutationResolver) SetPrice(ctx context.Context, input price.SetPriceInput) (*price.PricePayload, error) {
	return r.Prices.SetPrice(ctx, input)
}

func (r mutationResolver) DeletePrice(ctx context.Context, input price.DeletePriceInput) (*price.DeletePricePayload, error) {
	return r.Prices.DeletePrice(ctx, input)
}

func (priceResolver) Amount(_ context.Context, p *ent.Price) (string, error) {
	return price.Format(p.Micros), nil
}

// TokenPrices returns the prices of now.
func (r deploymentResolver) TokenPrices(ctx context.Context, d *ent.Deployment) (*model.TokenPrices, error) {
	table, err := loaders(ctx).prices.Load(ctx, uuid.Nil)
	if err != nil {
		return nil, err
	}
	of := func(kind entprice.Kind) *string {
		micros, ok := table.Tokens(kind, d.ID, clock.Now())
		if !ok {
			return nil
		}
		text := price.Format(micros)
		return &text
	}
	out := &model.TokenPrices{Input: of(entprice.KindInputTokens), CachedInput: of(entprice.KindCachedInputTokens), Output: of(entprice.KindOutputTokens)}
	if *out == (model.TokenPrices{}) {
		return nil, nil
	}
	return out, nil
}

// Cost returns what the tokens of an answer cost at the prices of its end.
func (r chatAnswerResolver) Cost(ctx context.Context, a *ent.ChatAnswer) (*string, error) {
	m := a.Measured
	if a.Hidden || m == nil || a.EndedAt == nil || a.Asked.Model.DeploymentID == nil || m.PromptTokens == nil && m.CompletionTokens == nil {
		return nil, nil
	}
	table, err := loaders(ctx).prices.Load(ctx, uuid.Nil)
	if err != nil {
		return nil, err
	}
	cost, priced := table.Answer(*a.Asked.Model.DeploymentID, *a.EndedAt, price.Tokens{Input: count(m.PromptTokens), Cached: count(m.CachedTokens), Output: count(m.CompletionTokens)})
	if !priced {
		return nil, nil
	}
	text := price.Rounded(cost)
	return &text, nil
}

func count(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// PricePerHour is null for a session that would be refused, or of which no slot has a price.
func (r dryRunResolver) PricePerHour(ctx context.Context, d *scheduler.DryRun) (*string, error) {
	if d.ResourceGroup == nil {
		return nil, nil
	}
	table, err := loaders(ctx).prices.Load(ctx, uuid.Nil)
	if err != nil {
		return nil, err
	}
	sum, priced := table.PerHour(d.Slots, *d.ResourceGroup, clock.Now())
	if !priced {
		return nil, nil
	}
	text := price.Rounded(sum)
	return &text, nil
}

package stats

import (
	"context"
	"math/big"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/price"
)

// part is a row of the statement: a sum to all of which one price applies.
type part struct {
	Slot       string
	Part       int    // index of the part of time
	PriceGroup string `json:"price_group"` // resource group; empty if no group has prices of its own
	Keys       string // the values of the dimensions as a text with tabs
	Used       string // smallest steps of the slot, times seconds
	at         time.Time
}

// usageSum is what the rows of one group add up to.
type usageSum struct {
	slot, keys     string
	used, unpriced *big.Rat // smallest steps of the slot, times seconds
	cost           *big.Rat // millionths; nil: no price applied
}

// fold adds the parts of each group, which follow each other.
func fold(prices *price.Table, parts []part) []*usageSum {
	var out []*usageSum
	var sum *usageSum
	for _, p := range parts {
		if sum == nil || sum.slot != p.Slot || sum.keys != p.Keys {
			sum = &usageSum{slot: p.Slot, keys: p.Keys, used: new(big.Rat), unpriced: new(big.Rat)}
			out = append(out, sum)
		}
		sum.add(prices, p)
	}
	return out
}

func (sum *usageSum) add(prices *price.Table, p part) {
	used, ok := new(big.Rat).SetString(p.Used)
	if !ok {
		used = new(big.Rat) // a sum of the database is a number
	}
	sum.used.Add(sum.used, used)
	group, _ := uuid.Parse(p.PriceGroup) // empty: no group has prices
	micros, priced := prices.Slot(p.Slot, group, p.at)
	if !priced {
		sum.unpriced.Add(sum.unpriced, used)
		return
	}
	if sum.cost == nil {
		sum.cost = new(big.Rat)
	}
	sum.cost.Add(sum.cost, price.Cost(p.Slot, used, micros))
}

// cut cuts steps of time where a price begins.
func cut(steps []bucket, prices *price.Table) []bucket {
	out := make([]bucket, 0, len(steps))
	for _, b := range steps {
		for _, at := range prices.Changes(b.from, b.to) {
			out = append(out, bucket{b.from, at, b.label})
			b.from = at
		}
		out = append(out, b)
	}
	return out
}

// costsOf rounds the costs of each slot so that they add up to the rounded cost of the slot; nil: no price applied.
func costsOf(sums []*usageSum) []*string {
	bySlot := map[string][]int{}
	for i, s := range sums {
		if s.cost != nil {
			bySlot[s.slot] = append(bySlot[s.slot], i)
		}
	}
	out := make([]*string, len(sums))
	for _, rows := range bySlot {
		exact := make([]*big.Rat, len(rows))
		for i, row := range rows {
			exact[i] = sums[row].cost
		}
		for i, micros := range price.Apportion(exact) {
			text := price.Decimal(micros)
			out[rows[i]] = &text
		}
	}
	return out
}

// Spent returns the exact cost, in millionths of the currency, of the allocations that an input without dimensions selects.
func Spent(ctx context.Context, client *ent.Client, prices *price.Table, in UsageReportInput) (*big.Rat, error) {
	sum := new(big.Rat)
	from, to := in.From.UTC().Truncate(time.Microsecond), in.To.UTC().Truncate(time.Microsecond)
	if !from.Before(to) {
		return sum, nil
	}
	parts, err := in.sum(ctx, client, prices, []bucket{{from, to, from}})
	if err != nil {
		return nil, err
	}
	for _, s := range fold(prices, parts) {
		if s.cost != nil {
			sum.Add(sum, s.cost)
		}
	}
	return sum, nil
}

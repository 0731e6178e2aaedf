package price

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entprice "github.com/berthhq/berth/ent/price"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
)

// descending is the order of times in lists.
var descending = sql.OrderDesc()

// Key is what a price is for.
type Key struct {
	Kind entprice.Kind
	Slot string    // of entprice.KindSlotHour
	Of   uuid.UUID // the resource group or the deployment; zero: all
}

func keyOf(p *ent.Price) Key {
	k := Key{Kind: p.Kind, Slot: p.Slot}
	if p.ResourceGroupID != nil {
		k.Of = *p.ResourceGroupID
	}
	if p.DeploymentID != nil {
		k.Of = *p.DeploymentID
	}
	return k
}

// Table is the price list at one moment, with all prices of the past and of the future.
type Table struct {
	prices  map[Key][]point // ascending
	grouped bool
}

// point is a price from a time on.
type point struct {
	from   time.Time
	micros int64
}

// Load reads the price list. It is not filtered by the viewer, because costs need all prices.
func Load(ctx context.Context, client *ent.Client) (*Table, error) {
	rows, err := client.Price.Query().Order(entprice.ByValidFrom(), entprice.ByID()).All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	return NewTable(rows), nil
}

// NewTable returns the table of prices that are sorted by their beginnings.
func NewTable(rows []*ent.Price) *Table {
	t := &Table{prices: map[Key][]point{}}
	for _, p := range rows {
		k := keyOf(p)
		t.prices[k] = append(t.prices[k], point{p.ValidFrom, p.Micros})
		t.grouped = t.grouped || p.ResourceGroupID != nil
	}
	return t
}

// Grouped reports whether a resource group has prices of its own.
func (t *Table) Grouped() bool { return t.grouped }

// at returns the price that applies at a time, and whether there is one.
func (t *Table) at(k Key, when time.Time) (int64, bool) {
	list := t.prices[k]
	n := sort.Search(len(list), func(i int) bool { return list[i].from.After(when) })
	if n == 0 {
		return 0, false
	}
	return list[n-1].micros, true
}

// Slot returns the price of a slot on a resource group at a time, and whether there is one. The
// price of the group is used before the price for all groups.
func (t *Table) Slot(slot string, group uuid.UUID, when time.Time) (micros int64, ok bool) {
	return t.of(entprice.KindSlotHour, slot, group, when)
}

// Tokens returns the price of 1,000 tokens of a deployment at a time, and whether there is one.
func (t *Table) Tokens(kind entprice.Kind, deployment uuid.UUID, when time.Time) (micros int64, ok bool) {
	return t.of(kind, "", deployment, when)
}

func (t *Table) of(kind entprice.Kind, slot string, one uuid.UUID, when time.Time) (int64, bool) {
	if one != uuid.Nil {
		if micros, ok := t.at(Key{kind, slot, one}, when); ok {
			return micros, true
		}
	}
	return t.at(Key{kind, slot, uuid.Nil}, when)
}

// Changes returns the times after from and before to at which a price of a slot begins, in order.
func (t *Table) Changes(from, to time.Time) []time.Time {
	var list []time.Time
	for k, points := range t.prices {
		if k.Kind != entprice.KindSlotHour {
			continue
		}
		for _, p := range points {
			if p.from.After(from) && p.from.Before(to) {
				list = append(list, p.from)
			}
		}
	}
	slices.SortFunc(list, time.Time.Compare)
	return slices.CompactFunc(list, time.Time.Equal)
}

// Cost returns what an amount of a slot costs, in millionths of the currency, at a price. The amount
// is in the slot's smallest steps, times seconds.
func Cost(slot string, stepSeconds *big.Rat, micros int64) *big.Rat {
	per := int64(1)
	if resource.KindOf(slot) == resource.Bytes {
		per = 1 << 30
	}
	for range resource.Scale(slot) {
		per *= 10
	}
	cost := new(big.Rat).Mul(stepSeconds, new(big.Rat).SetInt64(micros))
	return cost.Quo(cost, new(big.Rat).SetInt64(per*3600))
}

// PerHour returns what slots cost in an hour at the prices of a time, in millionths of the currency,
// and whether any of them has a price.
func (t *Table) PerHour(slots resource.Slots, group uuid.UUID, when time.Time) (sum *big.Rat, priced bool) {
	sum = new(big.Rat)
	for slot, amount := range slots {
		if micros, ok := t.Slot(slot, group, when); ok {
			hour := new(big.Rat).SetInt64(amount)
			sum.Add(sum, Cost(slot, hour.Mul(hour, big.NewRat(3600, 1)), micros))
			priced = true
		}
	}
	return sum, priced
}

// Tokens are the tokens of a request to a model.
type Tokens struct {
	Input  int // of the prompt, with those in the cache
	Cached int // of the prompt, in the cache of the engine
	Output int
}

// Answer returns what a request to a deployment costs at a time, in millionths of the currency, and
// whether any of its tokens has a price. Without a price for cached tokens, that of the input applies.
func (t *Table) Answer(deployment uuid.UUID, when time.Time, n Tokens) (sum *big.Rat, priced bool) {
	sum = new(big.Rat)
	add := func(tokens int, kinds ...entprice.Kind) {
		for _, kind := range kinds {
			if micros, ok := t.Tokens(kind, deployment, when); ok {
				cost := big.NewRat(micros, 1000)
				sum.Add(sum, cost.Mul(cost, big.NewRat(int64(tokens), 1)))
				priced = true
				return
			}
		}
	}
	cached := min(n.Cached, n.Input)
	add(n.Input-cached, entprice.KindInputTokens)
	if cached > 0 {
		add(cached, entprice.KindCachedInputTokens, entprice.KindInputTokens)
	}
	add(n.Output, entprice.KindOutputTokens)
	return sum, priced
}

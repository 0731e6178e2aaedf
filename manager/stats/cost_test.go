package stats_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/price"
	"github.com/berthhq/berth/manager/stats"
)

// tariff is a price of the naive computation.
type tariff struct {
	slot   string
	group  bool // of the resource group of all sessions
	from   time.Time
	micros int64
}

// priced gives the ledger random prices with changes over the month end and the change of clocks.
func (l *ledger) priced(n int) (list []tariff) {
	ctx := systemContext(l.t)
	group := l.Client.ResourceGroup.Query().Where(resourcegroup.Name("g")).OnlyX(ctx)
	for range n {
		p := tariff{
			slot: []string{"cpu", "mem"}[l.random.IntN(2)], group: l.random.IntN(3) == 0, // cuda.shares has no price
			from: l.begin.Add(time.Duration(l.random.Int64N(int64(10 * 24 * time.Hour)))).Truncate(time.Microsecond), micros: l.random.Int64N(5_000_000),
		}
		q := l.Client.Price.Create().SetKind("slot_hour").SetSlot(p.slot).SetMicros(p.micros).SetValidFrom(p.from)
		if p.group {
			q.SetResourceGroup(group)
		}
		q.ExecX(ctx)
		list = append(list, p)
	}
	return list
}

// rate returns the price of a slot at a time by hand.
func rate(list []tariff, slot string, at time.Time) (micros int64, ok bool) {
	for _, grouped := range []bool{true, false} {
		var since time.Time
		for _, p := range list {
			if p.slot == slot && p.group == grouped && !p.from.After(at) && (!ok || !p.from.Before(since)) {
				micros, since, ok = p.micros, p.from, true
			}
		}
		if ok {
			return micros, true
		}
	}
	return 0, false
}

// cost adds up the ledger by hand: every allocation, from one change of any price to the next.
func (l *ledger) cost(list []tariff, slot string, from, to time.Time) (cost *big.Rat, unpriced *big.Rat) {
	cost, unpriced = new(big.Rat), new(big.Rat)
	edges := []time.Time{from, to}
	for _, p := range list {
		if p.from.After(from) && p.from.Before(to) {
			edges = append(edges, p.from)
		}
	}
	for i := range edges {
		for j := i + 1; j < len(edges); j++ {
			if edges[j].Before(edges[i]) {
				edges[i], edges[j] = edges[j], edges[i]
			}
		}
	}
	for i := 1; i < len(edges); i++ {
		used := l.want(slot, edges[i-1], edges[i], func(entry) bool { return true })
		micros, ok := rate(list, slot, edges[i-1])
		if !ok {
			unpriced.Add(unpriced, used)
			continue
		}
		if resource.KindOf(slot) == resource.Bytes {
			used.Quo(used, big.NewRat(1<<30, 1))
		}
		used.Quo(used, big.NewRat(3600, 1))
		cost.Add(cost, used.Mul(used, big.NewRat(micros, 1_000_000)))
	}
	return cost, unpriced
}

// Whatever the grouping, the rows of a report add up to the same costs, which are those of the ledger.
func TestEveryGroupingHasTheSameCost(t *testing.T) {
	l := newLedger(t, 2000)
	prices := l.priced(60)
	berlin := "Europe/Berlin"
	for i := range 30 {
		from := l.begin.Add(time.Duration(l.random.Int64N(int64(6 * 24 * time.Hour)))).Truncate(time.Microsecond)
		to := from.Add(time.Duration(1 + l.random.Int64N(int64(6*24*time.Hour)))).Truncate(time.Microsecond)
		in := stats.UsageReportInput{From: from, To: &to, TimeZone: &berlin}
		for _, d := range []stats.UsageDimension{stats.ByUser, stats.ByProject, stats.ByDomain, stats.ByResourceGroup, stats.BySessionID} {
			if l.random.IntN(3) == 0 {
				in.By = append(in.By, d)
			}
		}
		if step := []stats.UsageDimension{"", stats.ByHour, stats.ByDay, stats.ByMonth}[i%4]; step != "" {
			in.By = append(in.By, step)
		}
		rows, err := stats.Report(systemContext(t), l.Client, in)
		if err != nil {
			t.Fatalf("%v: %v", in.By, err)
		}
		for _, slot := range []string{"cpu", "mem", "cuda.shares"} {
			want, unpriced := l.cost(prices, slot, from, to)
			got, none, priced := new(big.Rat), new(big.Rat), false
			for _, r := range rows {
				if r.Slot != slot {
					continue
				}
				none.Add(none, number(t, r.UnpricedSlotSeconds))
				if r.Cost != nil {
					priced = true
					got.Add(got, number(t, *r.Cost))
				}
			}
			if got.FloatString(6) != want.FloatString(6) || none.Cmp(unpriced) != 0 || slot == "cuda.shares" && priced {
				t.Errorf("%s by %v from %s to %s: %s and %s without a price, want %s and %s", slot, in.By, from, to,
					got.FloatString(6), none.FloatString(6), want.FloatString(6), unpriced.FloatString(6))
			}
		}
	}
}

func number(t *testing.T, text string) *big.Rat {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	return n
}

// The cost of one object is the part of the report that is about it.
func TestSpent(t *testing.T) {
	l := newLedger(t, 500)
	l.priced(20)
	ctx := systemContext(t)
	table, err := price.Load(ctx, l.Client)
	if err != nil {
		t.Fatal(err)
	}
	to := l.begin.Add(9 * 24 * time.Hour)
	rows, err := stats.Report(ctx, l.Client, stats.UsageReportInput{From: l.begin, To: &to, By: []stats.UsageDimension{stats.ByUser}})
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []uuid.UUID{l.A.Member.ID, l.B.Lead.ID} {
		spent, err := stats.Spent(ctx, l.Client, table, stats.UsageReportInput{From: l.begin, To: &to, User: &owner})
		if err != nil {
			t.Fatal(err)
		}
		want := new(big.Rat)
		for _, r := range rows {
			if r.Keys[0].Value == owner.String() && r.Cost != nil {
				want.Add(want, number(t, *r.Cost))
			}
		}
		// Rows are rounded to a millionth each.
		if d := new(big.Rat).Sub(want, new(big.Rat).Quo(spent, big.NewRat(1_000_000, 1))); d.Abs(d).Cmp(big.NewRat(3, 1_000_000)) > 0 || want.Sign() == 0 {
			t.Errorf("%s spent %s, the report says %s", owner, price.Rounded(spent), want.FloatString(6))
		}
	}
}

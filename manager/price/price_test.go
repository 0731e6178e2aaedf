package price_test

import (
	"context"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entprice "github.com/berthhq/berth/ent/price"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/price"
)

func fieldOf(err error) string {
	p, _ := problem.From(err)
	return p.Field
}

func ptr[T any](v T) *T { return &v }

func TestAmounts(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1_000_000, "0.000001": 1, "12.5": 12_500_000, "1000000000": 1_000_000_000_000_000} {
		if n, err := price.Parse("amount", text); err != nil || n != want || price.Format(n) != text {
			t.Errorf("%s: %d, %v, %s", text, n, err, price.Format(n))
		}
	}
	for _, text := range []string{"", "-1", "+1", "1e3", ".5", "1.", "0.0000001", "1000000000.000001", "99999999999", "1,5", "0x1", " 1", "NaN"} {
		if n, err := price.Parse("amount", text); fieldOf(err) != "amount" {
			t.Errorf("%q is read as %d: %v", text, n, err)
		}
	}
}

// Rounded parts add up to the rounded sum, and each is less than a millionth away from the exact part.
func TestApportion(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		parts, sum := make([]*big.Rat, 1+random.IntN(12)), new(big.Rat)
		for i := range parts {
			parts[i] = big.NewRat(random.Int64N(1_000_000), 1+random.Int64N(97))
			sum.Add(sum, parts[i])
		}
		total := new(big.Int)
		for i, n := range price.Apportion(parts) {
			total.Add(total, n)
			if d := new(big.Rat).Sub(new(big.Rat).SetInt(n), parts[i]); d.Abs(d).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Fatalf("%v is rounded to %v", parts[i], n)
			}
		}
		if price.Decimal(total) != price.Rounded(sum) {
			t.Fatalf("%v: parts add up to %s, want %s", parts, price.Decimal(total), price.Rounded(sum))
		}
	}
}

// A group's price is used before that for all groups, from its beginning on.
func TestTable(t *testing.T) {
	group, other, start := uuid.New(), uuid.New(), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	at := func(days int) time.Time { return start.AddDate(0, 0, days) }
	row := func(days int, slot string, of *uuid.UUID, micros int64) *ent.Price {
		return &ent.Price{Kind: entprice.KindSlotHour, Slot: slot, ResourceGroupID: of, Micros: micros, ValidFrom: at(days)}
	}
	table := price.NewTable([]*ent.Price{row(0, "cpu", nil, 100), row(5, "cpu", &group, 40), row(10, "cpu", nil, 200), row(12, "mem", nil, 7)})
	for _, one := range []struct {
		of   uuid.UUID
		days int
		want int64
	}{{group, 0, 100}, {group, 4, 100}, {group, 5, 40}, {group, 11, 40}, {other, 9, 100}, {other, 10, 200}} {
		if got, ok := table.Slot("cpu", one.of, at(one.days)); !ok || got != one.want {
			t.Errorf("day %d: %d, want %d", one.days, got, one.want)
		}
	}
	if _, ok := table.Slot("cpu", group, at(-1)); ok {
		t.Error("a price before the first one")
	}
	if list := table.Changes(at(0), at(12)); len(list) != 2 || !list[0].Equal(at(5)) || !list[1].Equal(at(10)) {
		t.Errorf("changes %v", list)
	}
	// 2 cores and 4 GiB.
	if sum, ok := table.PerHour(resource.Slots{"cpu": 2000, "mem": 4 << 30, "cuda.shares": 1000}, other, at(20)); !ok || price.Rounded(sum) != "0.000428" {
		t.Errorf("%v", sum)
	}
}

// Tokens in the cache have their own price, or that of the input.
func TestAnswer(t *testing.T) {
	row := func(kind entprice.Kind, micros int64) *ent.Price { return &ent.Price{Kind: kind, Micros: micros} }
	n := price.Tokens{Input: 3000, Cached: 1000, Output: 500}
	for want, rows := range map[string][]*ent.Price{
		"0.008":  {row("input_tokens", 2000), row("output_tokens", 4000)},
		"0.0065": {row("input_tokens", 2000), row("cached_input_tokens", 500), row("output_tokens", 4000)},
		"0.002":  {row("output_tokens", 4000)},
	} {
		if sum, ok := price.NewTable(rows).Answer(uuid.New(), time.Now(), n); !ok || price.Rounded(sum) != want {
			t.Errorf("%v, want %s", sum, want)
		}
	}
	if _, ok := price.NewTable(nil).Answer(uuid.New(), time.Now(), n); ok {
		t.Error("an answer has a cost without prices")
	}
}

// Prices of the past cannot be set, changed or deleted, and only superadmins set prices.
func TestThePastNeverChanges(t *testing.T) {
	w := identitytest.New(t)
	s := price.New(w.Client)
	super := w.As(t, w.Superadmin)
	set := func(ctx context.Context, amount string, from *time.Time) (*price.PricePayload, error) {
		return s.SetPrice(ctx, price.SetPriceInput{Kind: entprice.KindSlotHour, Slot: ptr("cpu"), Amount: amount, ValidFrom: from})
	}
	for _, past := range []time.Duration{time.Second, time.Hour, 365 * 24 * time.Hour} {
		if _, err := set(super, "1", ptr(time.Now().Add(-past))); fieldOf(err) != "validFrom" {
			t.Errorf("a price %s ago: %v", past, err)
		}
	}
	first, err := set(super, "0.25", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeletePrice(super, price.DeletePriceInput{ID: first.Price.ID}); err == nil {
		t.Error("a price that applies was deleted")
	}
	tomorrow := time.Now().Add(24 * time.Hour)
	next, err := set(super, "0.5", &tomorrow)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set(super, "0.75", &tomorrow); fieldOf(err) != "validFrom" {
		t.Errorf("two prices from one time: %v", err)
	}
	for _, u := range []*ent.User{w.A.Member, w.A.Lead, w.A.Admin} {
		if _, err := set(w.As(t, u), "1", nil); err == nil {
			t.Errorf("%s set a price", u.Email)
		}
		if list, err := s.List(w.As(t, u), false); err != nil || len(list) != 2 {
			t.Errorf("%s sees %d prices: %v", u.Email, len(list), err)
		}
	}
	if _, err := s.DeletePrice(super, price.DeletePriceInput{ID: next.Price.ID}); err != nil {
		t.Error(err)
	}
	if _, err := set(super, "0.3", nil); err != nil {
		t.Fatal(err)
	}
	now, err := s.List(super, false)
	if err != nil || len(now) != 1 || now[0].Micros != 300_000 {
		t.Errorf("%v, %v", now, err)
	}
	if all, err := s.List(super, true); err != nil || len(all) != 2 || all[1].Micros != 250_000 {
		t.Errorf("%v, %v", all, err)
	}
	for field, in := range map[string]price.SetPriceInput{
		"slot":          {Kind: entprice.KindSlotHour, Slot: ptr("no.such"), Amount: "1"},
		"deployment":    {Kind: entprice.KindSlotHour, Slot: ptr("cpu"), Amount: "1", Deployment: ptr(uuid.New())},
		"resourceGroup": {Kind: entprice.KindOutputTokens, Amount: "1", ResourceGroup: ptr(uuid.New())},
		"amount":        {Kind: entprice.KindOutputTokens, Amount: "free"},
	} {
		if _, err := s.SetPrice(super, in); fieldOf(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

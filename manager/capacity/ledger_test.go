package capacity

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
)

// slow divides one unit of time after the other.
func slow(spans []Span, uses []Use, from, to int64) (sums [8]*big.Int, used float64) {
	for i := range sums {
		sums[i] = new(big.Int)
	}
	add := func(i int, n int64) { sums[i].Add(sums[i], big.NewInt(n)) }
	places := map[place]bool{}
	for _, s := range spans {
		places[place{s.Device, s.Slot}] = true
	}
	for _, u := range uses {
		places[place{u.Device, u.Slot}] = true
	}
	for p := range places {
		for t := from; t < to; t++ {
			var capacity, measured, unmeasured, promised int64
			out, busy := false, 0.0
			for _, s := range spans { // spans of one place do not overlap here
				if (place{s.Device, s.Slot}) == p && s.From <= t && t < s.To {
					capacity, out = s.Amount, s.Out
				}
			}
			for _, u := range uses {
				switch {
				case (place{u.Device, u.Slot}) != p || t < u.From || t >= u.To:
				case t < u.Started:
					promised += u.Amount
				case u.Busy < 0:
					unmeasured += u.Amount
				default:
					measured += u.Amount
					busy += float64(u.Amount) * float64(u.Busy) / whole
				}
			}
			all := measured + unmeasured + promised
			measured = min(measured, capacity)
			unmeasured = min(unmeasured, capacity-measured)
			promised = min(promised, capacity-measured-unmeasured)
			rest := capacity - measured - unmeasured - promised
			used += min(busy, float64(measured))
			add(0, capacity)
			add(1, measured)
			add(2, unmeasured)
			add(3, promised)
			if out {
				add(5, rest)
			} else {
				add(4, rest)
			}
			add(6, all-measured-unmeasured-promised)
		}
	}
	return sums, used
}

type world struct {
	spans []Span
	uses  []Use
}

// random returns a small ledger: devices that appear, change, are out of service and disappear, and sessions that start or never do.
func random(r *rand.Rand) (w world) {
	agents, groups := []uuid.UUID{{1}, {2}}, []uuid.UUID{{8}, {9}}
	for d := range 1 + r.IntN(3) {
		device, agent, slot := uuid.UUID{byte(d + 1)}, agents[d%2], []string{"cpu", "cuda.device"}[d%2]
		at := int64(0)
		for range r.IntN(4) {
			from := at + int64(r.IntN(8))
			to := from + 1 + int64(r.IntN(15))
			if r.IntN(4) == 0 {
				to = none
			}
			w.spans = append(w.spans, Span{Device: device, Agent: agent, Group: groups[r.IntN(2)], Slot: slot, Amount: int64(r.IntN(9)), Out: r.IntN(3) == 0, From: from, To: to})
			if at = to; to == none {
				break
			}
		}
		for range r.IntN(5) {
			from := int64(r.IntN(30))
			u := Use{Device: device, Agent: agent, Slot: slot, Amount: 1 + int64(r.IntN(5)), From: from, To: from + 1 + int64(r.IntN(12)), Started: Never, Busy: Unmeasured}
			if r.IntN(5) > 0 {
				u.Started = from + int64(r.IntN(4))
			}
			if r.IntN(3) > 0 {
				u.Busy = int64(r.IntN(whole + 1))
			}
			w.uses = append(w.uses, u)
		}
	}
	return w
}

// total adds rows: capacity, measured, unmeasured, promised, unallocated, out, beyond, used.
func total(rows []Row) (sums [8]*big.Int) {
	for i := range sums {
		sums[i] = new(big.Int)
	}
	for _, r := range rows {
		for i, s := range []Sum{r.Capacity, r.Used, r.Unmeasured, r.Promised, r.Unallocated, r.Out, r.Beyond, r.Used} {
			sums[i].Add(sums[i], s.Int())
		}
		sums[1].Add(sums[1], r.Idle.Int())
	}
	return sums
}

// Every ledger is divided without a remainder, and every cut of it has the same sums, which are those of counting unit by unit.
func TestRandomLedgersAddUp(t *testing.T) {
	t.Parallel()
	n := 100_000
	if testing.Short() {
		n = 5_000
	}
	r := rand.New(rand.NewPCG(17, 5))
	for i := range n {
		w := random(r)
		from := int64(r.IntN(10))
		to := from + 1 + int64(r.IntN(30))
		middle := from + int64(r.IntN(int(to-from)))
		bounds := []int64{from, to}
		if middle > from {
			bounds = []int64{from, middle, to}
		}
		rows := Split(w.spans, w.uses, Cut{Bounds: bounds, ByGroup: i%2 == 0, ByAgent: i%3 == 0})
		for _, row := range rows {
			var parts Sum
			for _, s := range []Sum{row.Used, row.Idle, row.Unmeasured, row.Promised, row.Unallocated, row.Out} {
				parts.add(s)
			}
			if parts != row.Capacity {
				t.Fatalf("ledger %d: parts of %+v are %v", i, row, parts)
			}
		}
		got, want := total(rows), [8]*big.Int{}
		want, used := slow(w.spans, w.uses, from, to)
		for k := range 7 {
			if got[k].Cmp(want[k]) != 0 {
				t.Fatalf("ledger %d: sum %d is %v, want %v\n%+v", i, k, got[k], want[k], w)
			}
		}
		// Each time without changes loses less than one unit.
		if have, _ := new(big.Float).SetInt(got[7]).Float64(); have > used+1e-6 || have < used-100 {
			t.Fatalf("ledger %d: used %v, want %v", i, have, used)
		}
	}
}

func TestLargeAmounts(t *testing.T) {
	t.Parallel()
	const month, tera = 31 * 24 * 3600 * 1_000_000, 4 << 40
	d := uuid.UUID{1}
	rows := Split([]Span{{Device: d, Slot: "mem", Amount: tera, From: 0, To: none}},
		[]Use{{Device: d, Slot: "mem", Amount: tera, From: 0, To: none, Started: 0, Busy: whole / 4}}, Cut{Bounds: []int64{0, month}})
	want := new(big.Int).Mul(big.NewInt(month), big.NewInt(tera))
	if rows[0].Capacity.Int().Cmp(want) != 0 || rows[0].Used.Int().Cmp(want.Div(want, big.NewInt(4))) != 0 {
		t.Errorf("%v of %v", rows[0].Used.Int(), rows[0].Capacity.Int())
	}
}

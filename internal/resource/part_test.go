package resource

import (
	"maps"
	"math"
	"testing"
)

func TestPart(t *testing.T) {
	for _, c := range []struct{ n, from, to, want int64 }{
		{0, 1000, 80 << 30, 0},
		{500, 1000, 80 << 30, 40 << 30},
		{1, 3, 10, 4},
		{1, 1000, 1, 1},
		{7, 7, 3, 3},
		{9, 7, 3, 3}, // more than there is
		{5, 0, 3, 3},
		{math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1},
		{1, math.MaxInt64, math.MaxInt64, 1},
	} {
		if got := Part(c.n, c.from, c.to); got != c.want {
			t.Errorf("%d of %d is %d of %d, want %d", c.n, c.from, got, c.to, c.want)
		}
	}
}

func TestExceeding(t *testing.T) {
	unified := map[string]bool{"x.shares": true, "x.mem": true}
	capacity := Slots{"x.device": 1, "x.shares": 1000, "x.mem": 80 << 30, "x.ring": 4}
	for name, c := range map[string]struct{ used, more Slots }{
		"nothing":                      {Slots{}, Slots{}},
		"all by bytes":                 {Slots{"x.mem": 80 << 30}, Slots{}},
		"too many bytes":               {Slots{"x.mem": 80<<30 + 1, "x.shares": 1}, Slots{"x.mem": 80<<30 + 1}},
		"two halves":                   {Slots{"x.shares": 500, "x.mem": 40 << 30}, Slots{}},
		"one byte more":                {Slots{"x.shares": 500, "x.mem": 40<<30 + 1}, Slots{"x.shares": 500, "x.mem": 40<<30 + 1}},
		"another slot":                 {Slots{"x.shares": 500, "x.mem": 40 << 30, "x.ring": 4}, Slots{}},
		"more of the slot":             {Slots{"x.shares": 500, "x.ring": 5}, Slots{"x.ring": 5}},
		"a slot that it does not have": {Slots{"x.other": 1}, Slots{"x.other": 1}},
	} {
		if got := exceeding(c.used, capacity, unified); !maps.Equal(got, c.more) {
			t.Errorf("%s: %v, want %v", name, got, c.more)
		}
	}
	// Parts are rounded up: counted in thirds or tenths this is more than all, in
	// thousandths, as the last of it was given, it is not.
	three := map[string]bool{"x.a": true, "x.b": true, "x.c": true}
	if got := exceeding(Slots{"x.a": 1, "x.b": 3, "x.c": 366}, Slots{"x.a": 3, "x.b": 10, "x.c": 1000}, three); len(got) > 0 {
		t.Errorf("a third, three tenths and 366 thousandths: %v", got)
	}
}

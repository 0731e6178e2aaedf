package resource

import (
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

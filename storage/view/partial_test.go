package view

import (
	"math/rand/v2"
	"testing"
)

// Whatever the order of the pieces of a file, there is no gap before the front, and after all
// pieces, the front is at the end.
func TestFront(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		const size = 40
		var f front
		var there [size]bool
		pieces := r.Perm(size)
		for _, from := range pieces {
			to := min(size, from+1+r.IntN(3))
			f.wrote(int64(from), int64(to))
			for i := from; i < to; i++ {
				there[i] = true
			}
			want := 0
			for want < size && there[want] {
				want++
			}
			if got := f.reached(); got != int64(want) {
				t.Fatalf("after %v: %d, want %d", pieces, got, want)
			}
		}
	}
	var f front
	f.wrote(0, 10)
	f.wrote(20, 30)
	f.cut(5)
	f.wrote(5, 20)
	if f.reached() != 20 {
		t.Errorf("truncated bytes count: %d", f.reached())
	}
	for i := range int64(3 * maxAhead) {
		f.wrote(100+2*i, 101+2*i)
	}
	if len(f.ahead) > maxAhead {
		t.Errorf("%d pieces are remembered", len(f.ahead))
	}
}

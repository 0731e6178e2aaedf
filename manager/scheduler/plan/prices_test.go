package plan

import (
	"math"
	"testing"
)

// TestPricesOfPacking compares small cases with their known optimum.
func TestPricesOfPacking(t *testing.T) {
	for name, c := range map[string]struct {
		rates  map[int]float64
		left   float64
		want   float64
		within float64
	}{
		"halves, half left":                          {map[int]float64{50: 1}, 0.5, 0.5, 0.01},
		"halves, less than one":                      {map[int]float64{50: 1}, 0.49, 0, 0},
		"thirds, two left":                           {map[int]float64{33: 1}, 0.7, 0.67, 0.01},
		"more than half leaves no room for a second": {map[int]float64{60: 1}, 0.6, 1, 0.01},
		"a large request leaves a tenth":             {map[int]float64{81: 1, 10: 1}, 0.81, 0.95, 0.06},
		"no requests for fractions":                  {nil, 0.99, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := remainders(prices(c.rates))
			if got := priceOf(v, c.left); math.Abs(got-c.want) > c.within {
				t.Errorf("value %.3f, want %.3f", got, c.want)
			}
			if got := priceOf(v, 1); math.Abs(got-1) > 1e-9 {
				t.Errorf("a whole device is worth %v", got)
			}
		})
	}
}

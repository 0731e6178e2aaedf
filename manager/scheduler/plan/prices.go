package plan

import (
	"cmp"
	"math"
	"slices"
)

const (
	grains     = 100 // a device has 100 steps
	maxSizes   = 24  // number of sizes with a price: the most frequent
	priceSteps = 60  // for each size
)

// sized is a demand for a part of a device: its size in grains, and its frequency.
type sized struct {
	grains int
	rate   float64
}

// valuesOf returns the value of every possible remainder of a device of this kind.
func (m *mixture) valuesOf(c *cluster, d *device) []float64 {
	if v, ok := m.values[d.kind]; ok {
		return v
	}
	empty := *d
	empty.used, empty.pool = make([]int64, len(d.used)), nil
	rates := map[int]float64{}
	for i := range m.kinds {
		k := &m.kinds[i]
		if k.whole {
			continue
		}
		if n, size := k.on(c, &empty); n > 0 && size < 1 {
			rates[int(math.Ceil(size*grains-1e-9))] += k.rate
		}
	}
	v := remainders(prices(rates))
	m.values[d.kind] = v
	return v
}

// priceOf returns the value of a free part of a device.
func priceOf(values []float64, left float64) float64 {
	return values[int(left*grains+1e-9)]
}

// prices solves the dual of the linear relaxation of bin packing (Gilmore and
// Gomory, "A linear programming approach to the cutting-stock problem", 1961)
// for sizes s that come at rates l:
//
//	max sum_s l_s p_s  subject to  sum_s n_s p_s <= 1 for every n that fits one device
//
// by projected subgradient steps, in which the best pattern n at the current
// prices is a knapsack. A price is the part of a device that a size uses up in
// the best packing of all of them: above its size where little fits beside it.
func prices(rates map[int]float64) []sized {
	var list []sized
	for g, l := range rates {
		list = append(list, sized{g, l})
	}
	slices.SortFunc(list, func(a, b sized) int {
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.grains, b.grains))
	})
	list = list[:min(len(list), maxSizes)]
	price := make([]sized, len(list)) // rate holds the price
	mean := make([]sized, len(list))
	for i := range list {
		price[i] = sized{list[i].grains, float64(list[i].grains) / grains}
		mean[i].grains = list[i].grains
	}
	steps := priceSteps * len(list)
	for step := range steps {
		best, pattern := knapsack(price)
		sum := 0.0
		for i := range price {
			price[i].rate /= best[grains]
			sum += list[i].rate * price[i].rate
		}
		length := 0.05 / math.Sqrt(float64(step+1))
		for i := range price {
			if step >= steps/2 {
				mean[i].rate += price[i].rate
			}
			price[i].rate = max(0, price[i].rate+length*(list[i].rate/sum-float64(pattern[i])))
		}
	}
	if len(mean) > 0 {
		best, _ := knapsack(mean)
		for i := range mean {
			mean[i].rate /= best[grains]
		}
	}
	return mean
}

// remainders returns the best value of the sizes that fit each number of grains. Without
// sizes, only a whole device has a value.
func remainders(price []sized) []float64 {
	if len(price) == 0 {
		v := make([]float64, grains+1)
		v[grains] = 1
		return v
	}
	best, _ := knapsack(price)
	return best
}

// knapsack fills every number of grains with the sizes of the greatest value, and returns the
// number of each size on a whole device.
func knapsack(price []sized) (best []float64, pattern []int) {
	best = make([]float64, grains+1)
	var last [grains + 1]int
	for r := 1; r <= grains; r++ {
		best[r], last[r] = best[r-1], -1
		for i := range price {
			if g := price[i].grains; g <= r && best[r-g]+price[i].rate > best[r]+1e-12 {
				best[r], last[r] = best[r-g]+price[i].rate, i
			}
		}
	}
	pattern = make([]int, len(price))
	for r := grains; r > 0; {
		if last[r] < 0 {
			r--
			continue
		}
		pattern[last[r]]++
		r -= price[last[r]].grains
	}
	return best, pattern
}

package resource

import "math/bits"

// Part returns the amount that is the same part of `to` as n is of `from`, rounded up; if n is all
// of `from`, it returns `to`. Amounts are not negative, and `from` is above 0.
func Part(n, from, to int64) int64 {
	if n >= from {
		return to
	}
	hi, lo := bits.Mul64(uint64(n), uint64(to))
	lo, carry := bits.Add64(lo, uint64(from-1), 0)
	quotient, _ := bits.Div64(hi+carry, lo, uint64(from))
	return int64(quotient)
}

// exceeding returns the part of the usage that exceeds a device's capacity; empty if all of it
// fits. Unified slots are names of one amount: usage under several names is too much if it exceeds
// the capacity in the unit of any of them.
func exceeding(used, capacity Slots, unified map[string]bool) Slots {
	more, names := Slots{}, Slots{}
	for slot, n := range used {
		if n > capacity[slot] {
			more[slot] = n
		}
		if unified[slot] && n > 0 {
			names[slot] = n
		}
	}
	if len(more) > 0 || len(names) < 2 {
		return more
	}
	for slot := range names {
		sum := int64(0)
		for other, n := range names {
			sum += Part(n, capacity[other], capacity[slot])
		}
		if sum <= capacity[slot] {
			return Slots{}
		}
	}
	return names
}
